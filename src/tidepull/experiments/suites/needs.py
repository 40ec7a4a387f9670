"""What trials need before they can run, data files and extras, found out by building each of their worlds once.

A guest's package is only looked for, not imported."""

from __future__ import annotations

from collections.abc import Iterable

from tidepull.errors import DataError, MissingExtraError
from tidepull.experiments.suites.modules import load_modules
from tidepull.experiments.suites.spec import TrialSpec, canonical
from tidepull.policies import policies
from tidepull.problems import build_problem


def lacking(specs: Iterable[TrialSpec]) -> dict[str, list[TrialSpec]]:
    """The trials that cannot run here, by the sentence that says what is missing and how to get it."""
    worlds: dict[tuple[object, ...], str] = {}
    found: dict[str, list[TrialSpec]] = {}
    for spec in specs:
        world = (spec.problem, canonical(spec.problem_parameters), spec.modules)
        if world not in worlds:
            worlds[world] = _missing(spec)
        if reason := worlds[world] or _absent(spec):
            found.setdefault(reason, []).append(spec)
    return found


def _absent(spec: TrialSpec) -> str:
    """Empty unless the policy is a guest whose package is not here."""
    guest = policies.entry(spec.policy).guest
    return "" if guest is None or guest.installed else str(MissingExtraError(spec.policy, guest.extra))


def _missing(spec: TrialSpec) -> str:
    """Empty when the world can be built, or fails for a reason of its own, which its trials will record."""
    load_modules(spec.modules)
    seed = spec.seed if spec.problem_seed is None else spec.problem_seed
    try:
        build_problem((spec.problem, spec.problem_parameters), seed=seed)
    except (DataError, MissingExtraError) as error:
        return str(error)
    except Exception:
        return ""
    return ""
