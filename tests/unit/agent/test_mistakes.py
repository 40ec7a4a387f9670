"""What callers get wrong ends in one sentence that names the value and the fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tidepull
from tidepull import logs
from tidepull.errors import InputError, TidepullError


def made(**settings: Any) -> tidepull.Agent:
    return tidepull.Agent.memory(arms=["a", "b"], context={"x": float}, policy="ucb", **settings)


def texts() -> tidepull.Agent:
    return tidepull.Agent.memory(arms=["a", "b"], context={"s": str}, policy="ucb")


def rewarded(**given: Any) -> bool:
    agent = made(on_duplicate="add", reward_within=60)
    return agent.reward(agent.choose({"x": 1.0}), 1.0, **given)


def remote() -> Any:
    """An agent of a service that is not there: these mistakes are seen before a request."""
    return tidepull.Client("http://127.0.0.1:9").agent("shop")


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: made(reward_within=9, default_reward=float("nan")), "default_reward must be a number from"),
    (lambda: made(time_features="no"), "time_features must be True or False, got 'no'"),
    (lambda: made().choose({"x": 1.0}, at=1.78e12), "got 1780000000000.0; divide milliseconds by 1000"),
    (lambda: made().compact("old.csv", before="May"), "before must be seconds since 1970"),
    (lambda: made().choose({"x": 1.0}, id="x" * 5000), "1 to 256 characters, got 'xxxxxxxxxxxx...xxx"),
    (lambda: made().plot("shop.xyz"), "shop.xyz: the file's ending says the format; use .png"),
    (lambda: tidepull.Agent("mysql://shop", arms=["a", "b"]), "a file or a postgresql:// URL, got 'mysql:"),
    (lambda: tidepull.Agent(None, arms=["a", "b"]), "URL, got None; Agent.memory(...) makes one that"),  # type: ignore[arg-type]
    (lambda: tidepull.Agent("", arms=["a", "b"]), "'' is a directory: name a file, such as shop.db"),
    (lambda: tidepull.Agent("a\0b", arms=["a", "b"]), "cannot be the name of a file: embedded null byte"),
    (lambda: tidepull.Agent("x" * 300, arms=["a", "b"]), "cannot be the name of a file: File name too long"),
    (lambda: made().choose({"x": 1.0}, id="half \ud800"), "1 to 256 characters, got 'half \\ud800'"),
    (lambda: made().choose({"x": 1.0}, id=10**5000), "1 to 256 characters, got a value of int"),
    (lambda: made().choose({"x": 1.0}, subject="half \ud800"), "subject must be text, got 'half \\ud800'"),
    (lambda: made().choose({"x": 1.0}, at=10**400), "at must be seconds since 1970, a datetime or ISO"),
    (lambda: made().choose({"half \ud800": 1.0}), "context: there is no field 'half \\ud800'"),
    (lambda: texts().choose({"s": "half \ud800"}), "field 's' must be Unicode, got 'half \\ud800'"),
    (lambda: texts().reward(texts().choose({}), 10**5000), "at most 1e+15 in size, got a value of int"),
    (lambda: rewarded(key="half \ud800"), "key must be text of 1 to 256 characters, got 'half"),
    (lambda: rewarded(key=7), "key must be text of 1 to 256 characters, got 7"),
    (lambda: made().add("half \ud800"), "1 to 256 characters, got 'half \\ud800'"),
    (lambda: tidepull.LinearGaussian(0), "dim must be a whole number of at least 1, got 0"),
    (lambda: tidepull.LinearGaussian(2, prior_std=-1.0), "prior_std must be a positive number, got -1.0"),
    (lambda: tidepull.LinearGaussian(2, noise_std=0.0), "noise_std must be a positive number, got 0.0"),
    (lambda: tidepull.LinearGaussian(2, refresh_every=0), "refresh_every must be a whole number"),
    (lambda: tidepull.Agent(5, arms=["a"]), "a file or a postgresql:// URL, got 5"),  # type: ignore[arg-type]
    (lambda: made().compact("old.xlsx", before=0), "old.xlsx: the file's ending says the format"),
    (lambda: made().rollback("May"), "rollback: to must be a decision of this agent or a moment such as"),
    (lambda: made().lift(outcome="cost"), "there is no outcome 'cost'; no outcome was reported with also="),
    (lambda: tidepull.run_trial("nosuch", "ucb"), "there is no problem 'nosuch'; one of: flipping-gaussian"),
    (lambda: tidepull.Client("127.0.0.1:8000"), "url must be an address such as 'http://127.0.0.1:8000'"),
    (lambda: tidepull.Client(None), "url must be an address"),  # type: ignore[arg-type]
    (lambda: remote().reward("visit 1", float("nan")), "reward must be a finite number, got nan"),
    (lambda: remote().reward("visit 1", "1"), "reward must be a finite number, got '1'"),
    (lambda: remote().reward("visit 1", 1.0, also={"cost": None}), "also: cost must be a finite number"),
    (lambda: remote().choose({"x": float("inf")}), "context: field 'x' must be a finite number, got inf"),
    (lambda: remote().choose([1]), "context must be a dictionary, got a list"),
    (lambda: logs.read(None), "a log is read from a file or a dictionary, got None"),  # type: ignore[arg-type]
    (lambda: logs.read("log.csv", arms="ab"), "arms must be a list of texts, got 'ab'"),
    (lambda: logs.read("."), ". is a directory; name a file"),
    (lambda: logs.diagnose("log.csv"), "log must be a Log, which tidepull.logs.read"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "sentence"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_mistake_is_named_in_one_sentence(mistake: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        mistake()
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_path_that_cannot_be_written_is_the_callers_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place, reason in (
        (tmp_path / "file" / "x.csv", "a part of the path is a file"),
        (tmp_path, "a directory"),
    ):
        with pytest.raises(TidepullError, match=reason) as refused, made() as agent:
            agent.export(place.with_suffix(".csv") if place != tmp_path else _directory(tmp_path))
        assert refused.value.exit_code == 2


def _directory(folder: Path) -> Path:
    (folder / "out.csv").mkdir()
    return folder / "out.csv"


def test_agent_is_shown_with_its_present_arms() -> None:
    with made() as agent:
        agent.add("c")
        agent.retire("a")
        assert repr(agent) == "<Agent at memory: ucb, arms b, c>"
