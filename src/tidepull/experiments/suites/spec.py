"""One trial as data: what is played, by whom, for how long, on which seed; with an id and a content hash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from tidepull import registry
from tidepull.experiments.delay import AT_ONCE, delay_slug, delay_text
from tidepull.experiments.suites.data_files import checksum, data_files
from tidepull.experiments.suites.modules import load_modules, source_hashes
from tidepull.experiments.trial import Trial, run_trial

RESULTS_VERSION = 1
"""Raised when a change to tidepull makes all trials come out differently; old results are then re-run.

What changes one problem or one policy raises the `version` of its registry entry instead."""


@dataclass(frozen=True, kw_only=True)
class TrialSpec:
    """A trial that can be sent anywhere and run there with the same result.

    `name` and `setting` only name it (`rnlps-default`, `epochs=16,units=32x32x32`); everything else
    goes into the hash. `modules` are your own modules or .py files, imported first so that they can register
    problems and policies. `delay` is how late rewards come, as in `run_trial` (no function).
    """

    problem: str
    policy: str
    horizon: int
    seed: int
    problem_parameters: Mapping[str, Any] = field(default_factory=dict)
    policy_parameters: Mapping[str, Any] = field(default_factory=dict)
    problem_seed: int | None = None
    delay: int | str = 0
    problem_name: str = ""
    name: str = ""
    setting: str = ""
    modules: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """For people: `flipping-gaussian/rnlps-default/seed-3`; late rewards follow the problem, as `delay-8`."""
        parts = (
            self.problem_name or self.problem,
            delay_slug(self.delay_text),
            self.name or self.policy,
            self.setting,
            f"seed-{self.seed}",
        )
        return "/".join(part for part in parts if part)

    @property
    def delay_text(self) -> str:
        """How late rewards come, in its one spelling."""
        return delay_text(self.delay)

    @property
    def content(self) -> dict[str, Any]:
        """Everything that can change the result, every parameter spelled out."""
        policy, problem = self.resolved_parameters
        return {
            "results_version": RESULTS_VERSION,
            "problem": self.problem,
            "problem_parameters": json.loads(problem),
            "policy": self.policy,
            "policy_parameters": json.loads(policy),
            "horizon": self.horizon,
            "seed": self.seed,
            "problem_seed": self.seed if self.problem_seed is None else self.problem_seed,
            "code": source_hashes(self.modules),
            "data": {file.name: checksum(file) for file in self.data_files},
            **self._versions(),
            **({} if self.delay_text == AT_ONCE else {"delay": self.delay_text}),
        }

    def _versions(self) -> dict[str, int | str]:
        """Versions of the problem and the policy, where they are not the first, and of a guest's package."""
        load_modules(self.modules)
        policy = registry.policies.entry(self.policy)
        versions = {
            "problem_version": registry.problems.entry(self.problem).version,
            "policy_version": policy.version,
        }
        package = {} if policy.guest is None else {policy.guest.name: policy.guest.version}
        return {name: version for name, version in versions.items() if version > 1} | package

    @property
    def resolved_parameters(self) -> tuple[str, str]:
        """All parameters of the policy and of the problem, defaults included, as JSON."""
        load_modules(self.modules)
        return (
            _resolved("policy", self.policy, canonical(self.policy_parameters)),
            _resolved("problem", self.problem, canonical(self.problem_parameters)),
        )

    @property
    def data_files(self) -> tuple[Path, ...]:
        """The files that the problem reads."""
        load_modules(self.modules)
        return data_files(self.problem, canonical(self.problem_parameters))

    @cached_property
    def hash(self) -> str:
        """Two specs with one hash give the same bytes."""
        return sha256(canonical(self.content).encode()).hexdigest()[:32]


def run_spec(spec: TrialSpec) -> Trial:
    """Play the trial that a spec describes."""
    load_modules(spec.modules)
    return run_trial(
        (spec.problem, spec.problem_parameters),
        (spec.policy, spec.policy_parameters),
        horizon=spec.horizon,
        seed=spec.seed,
        problem_seed=spec.problem_seed,
        delay=spec.delay,
    )


def canonical(value: Any) -> str:
    """JSON with one way to write each value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


@lru_cache(maxsize=65536)
def _resolved(noun: str, id: str, values: str) -> str:
    entries: registry.Registry[Any] = registry.problems if noun == "problem" else registry.policies
    return canonical(entries.resolve((id, json.loads(values)))[1].to_mapping())
