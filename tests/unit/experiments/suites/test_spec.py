from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tidepull import registry
from tidepull.errors import DataError, ParameterError, SuiteError, UnknownIdError
from tidepull.experiments import spec as spec_module
from tidepull.experiments.spec import TrialSpec, checksum, run_spec

OWN = str(Path(__file__).parents[1] / "own_trivial.py")
SPEC = TrialSpec(problem="coins", policy="lever", horizon=30, seed=3, modules=(OWN,))


def test_id_is_readable_and_uses_labels() -> None:
    assert SPEC.id == "coins/lever/seed-3"
    assert replace(SPEC, name="lever-grid", setting="arm=1").id == "coins/lever-grid/arm=1/seed-3"
    assert replace(SPEC, delay=8).id == "coins/delay-8/lever/seed-3"


def test_hash_stays_when_only_labels_or_spelling_change() -> None:
    spelt_out = replace(
        SPEC, problem_parameters={"n_arms": 3}, policy_parameters={"sleep": 0, "arm": None}
    )
    for same in (
        spelt_out,
        replace(SPEC, name="x", setting="y", problem_name="z"),
        replace(SPEC, problem_seed=3),
        replace(SPEC, delay="0"),
        replace(SPEC, delay="geometric:0"),
    ):
        assert same.hash == SPEC.hash
    assert replace(SPEC, delay="geometric:2.0").hash == replace(SPEC, delay="geometric:2:0").hash


def test_hash_of_a_trial_without_delay_is_what_it_was_before_there_were_delays() -> None:
    spec = TrialSpec(problem="flipping-gaussian", policy="ucb", horizon=100, seed=1)
    assert "delay" not in spec.content
    assert spec.hash == "8306ba04a996c600265bf7bf37980be8"


@pytest.mark.parametrize("parameters", [{}, {"init": "paper"}, {"init": "authors-code"}])
def test_hash_of_a_trial_is_what_it_was_when_a_choice_is_renamed(
    parameters: dict[str, object],
) -> None:
    spec = TrialSpec(
        problem="flipping-gaussian",
        policy="rnlps",
        policy_parameters=parameters,
        horizon=10,
        seed=0,
    )
    assert spec.hash == "21568f62581aeed5df7bd984dfad0625"


def test_run_spec_plays_with_the_delay() -> None:
    spec = TrialSpec(problem="flipping-gaussian", policy="ucb", horizon=200, seed=1)
    at_once, late = run_spec(spec), run_spec(replace(spec, delay=50))
    assert at_once.arms.tolist() != late.arms.tolist()
    assert len(set(late.arms[:50].tolist())) == 8  # untried arms first, whatever is known


@pytest.mark.parametrize(
    "change",
    [
        {"horizon": 31},
        {"seed": 4},
        {"problem_seed": 4},
        {"problem_parameters": {"n_arms": 4}},
        {"policy_parameters": {"arm": 1}},
        {"problem": "few-coins"},
        {"policy": "any-lever"},
        {"modules": (OWN, "json")},
        {"delay": 1},
        {"delay": "geometric:2"},
    ],
)
def test_hash_changes_with_everything_that_can_change_the_result(change: dict[str, object]) -> None:
    assert replace(SPEC, **change).hash != SPEC.hash  # type: ignore[arg-type]


def test_hash_changes_with_the_results_version(monkeypatch: pytest.MonkeyPatch) -> None:
    before = replace(SPEC).hash
    monkeypatch.setattr(spec_module, "RESULTS_VERSION", spec_module.RESULTS_VERSION + 1)
    assert replace(SPEC).hash != before


@pytest.mark.parametrize(("noun", "id"), [("problem", "coins"), ("policy", "lever")])
def test_hash_changes_for_one_problem_or_policy_when_its_version_is_raised(
    noun: str, id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, other = replace(SPEC).hash, replace(SPEC, problem="few-coins", policy="any-lever")
    untouched = replace(other).hash
    entries: registry.Registry[Any] = registry.problems if noun == "problem" else registry.policies
    monkeypatch.setitem(entries._entries, id, replace(entries.entry(id), version=2))
    raised = replace(SPEC)
    assert raised.hash != before
    assert raised.content[f"{noun}_version"] == 2
    assert replace(other).hash == untouched


def test_hash_changes_with_own_source_but_not_with_its_place(tmp_path: Path) -> None:
    hashes = []
    for folder, text in (("a", "X = 1\n"), ("b", "X = 1\n"), ("c", "X = 2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(text)
        hashes.append(replace(SPEC, modules=(OWN, str(tmp_path / folder / "mine.py"))).hash)
    assert hashes[0] == hashes[1] != hashes[2]


def test_spec_survives_pickling_and_runs() -> None:
    again = pickle.loads(pickle.dumps(SPEC))
    assert again == SPEC
    assert run_spec(again).regret.shape == (30,)


def test_wrong_ids_parameters_and_modules_are_one_sentence() -> None:
    with pytest.raises(UnknownIdError, match="did you mean 'coins'"):
        _ = replace(SPEC, problem="coin").hash
    with pytest.raises(ParameterError, match="lever: there is no parameter 'arms'"):
        _ = replace(SPEC, policy_parameters={"arms": 1}).hash
    with pytest.raises(SuiteError, match=r"the module 'nowhere\.py' cannot be imported"):
        _ = replace(SPEC, modules=("nowhere.py",)).hash


def test_hash_changes_with_the_data_that_a_problem_reads(tmp_path: Path) -> None:
    hashes = []
    for content in (b"one", b"one", b"two"):
        path = tmp_path / "world.txt"
        path.write_bytes(content)
        hashes.append(
            replace(SPEC, problem="file-coins", problem_parameters={"path": str(path)}).hash
        )
    assert hashes[0] == hashes[1] != hashes[2]
    path.unlink()
    with pytest.raises(DataError, match=r"world\.txt cannot be read"):
        _ = replace(SPEC, problem="file-coins", problem_parameters={"path": str(path)}).hash


def test_problems_that_read_files_say_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = TrialSpec(
        problem="criteo-flipping", problem_parameters={"dim": 4}, policy="random", horizon=5, seed=0
    )
    monkeypatch.setenv("TIDEPULL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (file,) = spec.data_files
    assert file.name.startswith("criteo-synthetic")
    assert spec.content["data"] == {file.name: checksum(file)}
