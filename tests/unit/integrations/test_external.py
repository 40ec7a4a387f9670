from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tidepull import Agent, Context, Event, ProblemShape
from tidepull._internal.extras import Package
from tidepull.errors import MissingExtraError, ParameterError, SnapshotError, UnknownIdError
from tidepull.experiments.executors import LocalProcesses
from tidepull.experiments.loop import run_trial
from tidepull.experiments.spec import TrialSpec, lacking
from tidepull.policies import build_policy, policies

EXTERNAL = policies.external()
IDS = [entry.id for entry in EXTERNAL]
HERE = [entry.id for entry in EXTERNAL if entry.library is not None and entry.library.installed]
each_external = pytest.mark.parametrize("id", HERE)


def global_state() -> list[Any]:
    return [random.getstate(), str(np.random.get_state()), np.geterr()]  # noqa: NPY002


def spec(id: str, **others: Any) -> TrialSpec:
    return TrialSpec(problem="flipping-bernoulli", policy=id, horizon=20, seed=0, **others)


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of an external policy whose package is not installed."""
    entry = policies.entry("vw-bag")
    gone = replace(entry, library=Package("no_such_package", "integrations"))
    monkeypatch.setitem(policies._external, "vw-bag", gone)
    return "vw-bag"


def test_external_policies_have_prefixes_of_the_table_and_are_not_ours() -> None:
    assert {id.partition("-")[0] for id in IDS} == set(policies._modules)
    assert not set(IDS) & set(policies.ids())


def test_no_external_policy_is_imported_before_it_is_asked_for_and_none_changes_the_process() -> (
    None
):
    code = (
        "import sys, numpy, scipy.special\n"
        "from tidepull.registry import policies\n"
        "assert not [name for name in sys.modules if 'neighbours' in name], sys.modules\n"
        "policies.entry('vw-bag')\n"
        "assert 'tidepull.integrations.external.vowpal_wabbit' in sys.modules\n"
        "assert not {'vowpalwabbit', 'tidepull.integrations.external.river'} & set(sys.modules)\n"
        "assert len(policies.external()) == " + str(len(IDS)) + "\n"
        "packages = 'bayesianbandits', 'gittins', 'mabwiser', 'river', 'SMPyBandits', "
        "'vowpalwabbit'\n"
        "assert not set(packages) & set(sys.modules)\n"
    )
    if Package("SMPyBandits", "").installed:
        code += (
            "before = numpy.geterr()\n"
            "from tidepull.integrations.external.smpybandits import smpy_module\n"
            "first = smpy_module('GLR_UCB').CD_IndexPolicy\n"
            "assert smpy_module('CUSUM_UCB').CD_IndexPolicy is first\n"
            "assert not [name for name in sys.modules if name.startswith(('SMPyBandits', "
            "'matplotlib'))]\n"
            "assert numpy.geterr() == before and not hasattr(scipy.special, 'btdtri')"
        )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_an_unknown_external_policy_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownIdError, match="did you mean 'vw-squarecb'"):
        policies.entry("vw-squarcb")


@pytest.mark.parametrize("id", IDS)
def test_parameters_of_external_policies_are_checked_without_their_package(id: str) -> None:
    entry, parameters = policies.resolve(id)
    assert entry.parse(parameters.to_mapping()) == parameters
    with pytest.raises(ParameterError, match=f"{id}: there is no parameter 'no-such'"):
        policies.resolve((id, {"no-such": 1}))


@each_external
def test_an_external_policy_plays_the_same_arms_under_the_same_seed_and_touches_no_global_generator(
    id: str,
) -> None:
    build_policy(
        (id, horizon(id)), ProblemShape(3), seed=0
    )  # some packages draw while they are imported
    before = global_state()
    first, again, other = (
        run_trial("flipping-bernoulli", id, horizon=20, seed=seed) for seed in (1, 1, 2)
    )
    after = global_state()
    assert first.arms.tolist() == again.arms.tolist()
    assert len(set(first.arms.tolist())) > 1
    assert first.arms.tolist() != other.arms.tolist()
    assert before == after


@each_external
def test_an_external_policy_keeps_to_the_arms_that_are_available(id: str) -> None:
    policy = build_policy((id, horizon(id)), ProblemShape(4), seed=0)
    context = Context(available=np.array([False, True, False, True]))
    arms = []
    for _ in range(25):
        arms.append(policy.choose(context))
        policy.learn(Event(context, arms[-1], float(arms[-1] == 3)))
    assert set(arms) <= {1, 3}


@each_external
def test_rewards_of_an_external_policy_may_be_late_or_missing_and_events_may_come_from_a_log(
    id: str,
) -> None:
    trial = run_trial("flipping-bernoulli", id, horizon=40, seed=0, delay="geometric:3:0.2")
    assert len(trial.arms) == 40
    policy = build_policy((id, horizon(id)), ProblemShape(3), seed=0)
    for k in range(6):
        policy.learn(Event(Context(), k % 3, 1.0))
    assert policy.choose(Context()) in range(3)


@each_external
def test_an_external_policy_says_that_it_has_no_snapshots(id: str) -> None:
    policy = build_policy((id, horizon(id)), ProblemShape(3), seed=0)
    with pytest.raises(SnapshotError, match=f"{id} has no snapshots: its state lies inside"):
        policy.snapshot()


@pytest.mark.parametrize("id", IDS)
def test_an_agent_refuses_an_external_policy_when_it_is_made(id: str) -> None:
    with pytest.raises(ParameterError, match=f"policy: {id} has no snapshots"):
        Agent.memory(arms=["a", "b"], policy=id)


def test_a_missing_package_is_named_before_trials_start(absent: str) -> None:
    sentence = f"{absent} needs the extra 'integrations': pip install 'tidepull\\[integrations\\]'"
    with pytest.raises(MissingExtraError, match=sentence):
        run_trial("flipping-bernoulli", absent, horizon=5)
    found = lacking([spec(absent), spec("random")])
    assert [lost[0].policy for lost in found.values()] == [absent]
    assert "pip install 'tidepull[integrations]'" in next(iter(found))


def test_the_version_of_an_external_package_is_part_of_a_trials_identity(absent: str) -> None:
    assert (
        spec("vw-cover").content["vowpalwabbit"] == Package("vowpalwabbit", "integrations").version
    )
    assert spec("vw-cover").hash != spec(absent).hash
    assert "no_such_package" not in spec("random").content


@pytest.mark.skipif(not HERE, reason="no external package is installed")
def test_worker_processes_find_external_policies_by_their_ids() -> None:
    (result,) = LocalProcesses(1).run([spec(HERE[-1])])
    assert result.error == ""
    assert result.trial is not None
    assert (
        result.trial.arms.tolist()
        == run_trial("flipping-bernoulli", HERE[-1], horizon=20).arms.tolist()
    )


def horizon(id: str) -> dict[str, Any]:
    """External policies that want to know how long a trial is, told so."""
    known = policies.entry(id).parameters.__dataclass_fields__
    return {"horizon": 100} if "horizon" in known else {}


CALENDAR = (
    "vw-squarecb",
    "gittins",
    "bayesianbandits-ts",
    "river-linucb-disjoint",
    "mabwiser-linucb",
)


@pytest.mark.parametrize("id", [id for id in CALENDAR if id in HERE])
def test_external_policy_that_sees_the_calendar_learns_the_hours(id: str) -> None:
    world = ("shop", {"kind": "hours"})
    blind, seeing = (
        run_trial(world, (id, {"calendar": calendar}), horizon=1500, seed=3).regret[-1]
        for calendar in (False, True)
    )
    assert seeing < 0.9 * blind
