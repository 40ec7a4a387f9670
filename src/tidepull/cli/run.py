"""`tidepull run PROBLEM POLICY`: one pair on several seeds, in parallel; `tidepull demo`: seven
policies in one table and one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from typer import Argument, Option

from tidepull.cli import options
from tidepull.cli.console import print_json, print_table, progress, say
from tidepull.cli.trials import ready
from tidepull.errors import InputError, ParameterError, TidepullError
from tidepull.experiments.delay import AT_ONCE, delay_text, delay_words
from tidepull.experiments.executors import LocalProcesses, usable_cpus
from tidepull.experiments.loop import Trial
from tidepull.experiments.spec import TrialSpec
from tidepull.problems import problems
from tidepull.registry import Named
from tidepull.reporting.stats import Summary, summarise


def run(
    problem: str = Argument(help="Id of a problem (see: tidepull list problems)."),
    policy: str = Argument(help="Id of a policy (see: tidepull list policies)."),
    horizon: int = Option(None, help="Rounds in each trial. Default: the problem's usual length."),
    seeds: str = Option("1", help=f"Seeds, one trial on each: {options.SEEDS}"),
    delay: str = options.DELAY,
    set_: list[str] = options.SET,
    workers: options.Workers = None,
    json: bool = options.JSON,
) -> None:
    """Run one policy on one problem and show its regret."""
    rounds = problems.entry(problem).horizon if horizon is None else horizon
    for option, value in (("horizon", rounds), ("workers", workers)):
        if value is not None and value < 1:
            raise ParameterError(f"--{option} must be at least 1, got {value}")
    played = options.seeds_of(seeds)
    named_problem, named_policy = options.split_settings(problem, policy, set_)
    late = delay_text(delay)
    specs = [
        make_spec(named_problem, named_policy, horizon=rounds, seed=s, delay=late) for s in played
    ]
    ready(specs)
    trials = run_specs(specs, description=f"{policy} on {problem}", workers=workers)
    if json:
        print_json([_as_json(seed, trial) for seed, trial in zip(played, trials, strict=True)])
    else:
        title = (f"{policy} on {problem}", f"{rounds:,} rounds", delay_words(late))
        _show(", ".join(part for part in title if part), played, trials)


def run_specs(
    specs: list[TrialSpec], *, description: str, workers: int | None = None
) -> list[Trial]:
    """Trials in the order of their specs, with a progress bar; the first failure ends the run."""
    trials: dict[str, Trial] = {}
    with progress(description, len(specs)) as bar:
        for result in LocalProcesses(workers=min(workers or usable_cpus(), len(specs))).run(specs):
            if result.trial is None:
                raise InputError(result.mistake) if result.mistake else TidepullError(result.error)
            trials[result.spec.id] = result.trial
            bar.advance(bar.task_ids[0])
    return [trials[spec.id] for spec in specs]


def make_spec(
    problem: Named, policy: Named, *, horizon: int, seed: int, delay: str = AT_ONCE
) -> TrialSpec:
    """The spec of one trial from ids or `(id, {parameters})` pairs."""
    problem_id, problem_parameters = (problem, {}) if isinstance(problem, str) else problem
    policy_id, policy_parameters = (policy, {}) if isinstance(policy, str) else policy
    return TrialSpec(
        problem=problem_id,
        problem_parameters=problem_parameters,
        policy=policy_id,
        policy_parameters=policy_parameters,
        horizon=horizon,
        seed=seed,
        delay=delay,
    )


def _as_json(seed: int, trial: Trial) -> dict[str, Any]:
    return {
        "seed": seed,
        "regret": float(trial.regret[-1]),
        "reward": float(trial.rewards.sum()),
        "seconds": round(trial.seconds, 3),
        "diagnostics": dict(trial.diagnostics),
    }


def _show(title: str, seeds: Sequence[int], trials: list[Trial]) -> None:
    remark = trials[0].remark
    rows = [
        [
            str(seed),
            f"{t.regret[-1]:.1f}",
            f"{t.rewards.sum():.1f}",
            f"{share_of_oracle(t):.1%}",
            f"{t.seconds:.2f}",
        ]
        for seed, t in zip(seeds, trials, strict=True)
    ]
    regrets = summarise(np.array([t.regret[-1] for t in trials]))
    rewards = summarise(np.array([t.rewards.sum() for t in trials]))
    share = float(np.mean([share_of_oracle(t) for t in trials]))
    seconds = float(np.mean([t.seconds for t in trials]))
    label = "mean" if len(trials) < 2 else "mean ± std"
    means = with_spread(regrets), with_spread(rewards)
    rows.append([label, *means, f"{share:.1%}", f"{seconds:.2f}"])
    columns = ["seed", "regret", "reward", "of the oracle's reward", "seconds"]
    print_table(f"{title} ({remark})" if remark else title, columns, rows, right=range(1, 5))
    if len(trials) > 1:
        low, high = regrets.mean - regrets.half_width, regrets.mean + regrets.half_width
        say(
            f"[dim]± is the standard deviation over trials; mean regret, 95% interval: {low:.1f} "
            f"to {high:.1f}[/]"
        )
    _show_diagnostics(trials[0], seeds[0])


_LABELS = {
    "hypotheses": "models",
    "births": "models found by the structure search",
    "too_late": "rewards that came too late",
    "set_aside": "outliers set aside",
}
"""Diagnostics in the words of the manual."""


def _show_diagnostics(trial: Trial, seed: int) -> None:
    for name, value in trial.diagnostics.items():
        if name == "beliefs":
            from tidepull.reporting.result_tables import beliefs_of

            beliefs = beliefs_of(trial.diagnostics)
            for words, weight in beliefs.leading if beliefs else ():
                if weight >= 0.005:
                    say(f"[dim]believes: {escape(words)}, {weight:.0%} (seed {seed})[/]")
        elif not name.startswith("explanation"):
            label = _LABELS.get(name, name.replace("_", " "))
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            say(f"[dim]{escape(f'{label}: {text}')} (seed {seed})[/]")


def share_of_oracle(trial: Trial) -> float:
    """Expected reward earned as a share of the oracle's."""
    return float(1 - trial.regret[-1] / trial.optimal.sum())


def with_spread(summary: Summary) -> str:
    """Mean ± standard deviation over trials; the mean alone when there is one trial."""
    return f"{summary.mean:.1f}" + (f" ± {summary.std:.1f}" if summary.trials > 1 else "")


PROBLEM = "sinusoidal-bernoulli"
POLICIES: list[tuple[str, Named]] = [
    ("random", "random"),
    ("ucb", "ucb"),
    ("bernoulli-ts", "bernoulli-ts"),
    ("sw-ucb", ("sw-ucb", {"window": 75})),
    ("d-ucb", ("d-ucb", {"discount": 0.995})),
    ("rnlps", "rnlps"),
    ("tide", "tide"),
]


def demo(
    out: Path = Option(Path("demo-regret.png"), help="Picture to write."),
    seeds: str = Option("5", help=f"Seeds, one trial of each policy on each: {options.SEEDS}"),
    horizon: int = Option(4096, min=1, help="Rounds in each trial."),
) -> None:
    """Compare seven policies on five arms whose success rates are seasonal, as a table and a
    picture."""
    from tidepull._internal.warm_up import warm_up
    from tidepull.reporting.figures import pyplot, regret_curves

    played = options.seeds_of(seeds)
    pyplot()  # a missing library is reported before trials are played
    say(
        f"[bold]{PROBLEM}[/]: five arms, each arm's success rate swings with a period of 32 rounds."
    )
    # Here, so that the workers find the kernels on disk.
    warm_up(lambda: say("compiling kernels (once, about a minute)"))
    specs = {
        name: [make_spec(PROBLEM, policy, horizon=horizon, seed=seed) for seed in played]
        for name, policy in POLICIES
    }
    longest_first = [spec for row in reversed(specs.values()) for spec in row]
    trials = iter(run_specs(longest_first, description="playing"))
    done = {name: [next(trials) for _ in row] for name, row in reversed(specs.items())}
    regrets = {name: summarise(np.array([t.regret[-1] for t in row])) for name, row in done.items()}
    best = min(regrets, key=lambda name: regrets[name].mean)
    rows = [
        [
            f"[bold green]{name}[/]" if name == best else name,
            with_spread(regrets[name]),
            f"{np.mean([share_of_oracle(t) for t in done[name]]):.1%}",
            f"{np.mean([t.seconds for t in done[name]]):.2f}",
        ]
        for name in sorted(regrets, key=lambda name: -regrets[name].mean)
    ]
    columns = ["policy", "regret ± standard deviation", "of the oracle's reward", "seconds a trial"]
    print_table(
        f"{PROBLEM}: {len(played)} trials of {horizon:,} rounds", columns, rows, right=(1, 2, 3)
    )
    curves = {name: np.stack([t.regret for t in row]) for name, row in done.items()}
    regret_curves(curves, title=f"{PROBLEM}: mean of {len(played)} trials, 95% band", path=out)
    say(f"picture: [bold]{out}[/]")
