"""`tidepull theory ...`: the regret bound with measurement error, computed and put to the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from typer import Argument, Option, Typer

from tidepull.cli import options
from tidepull.cli.console import print_json, progress, say, show_table
from tidepull.errors import ParameterError
from tidepull.paper.theory import simulate as simulation
from tidepull.paper.theory import tables
from tidepull.paper.theory.bound import LinearSetting
from tidepull.paper.theory.environment import ADVERSARIES, ERRORS, NOISES, SCHEDULES
from tidepull.paper.theory.measurement_error import Scenario
from tidepull.paper.theory.tables import bound_report, simulation_report

app = Typer(
    help="Compute the regret bound with measurement error, and test it by simulation.",
    no_args_is_help=True,
    add_completion=False,
)

_LARGEST = 10**15
_SWEEPS: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("epsilon", simulation.EPSILONS),
    ("d", simulation.DIMENSIONS),
    ("k", simulation.ARMS),
)

D = Option(help="Dimension of the contexts.", max=_LARGEST)
K = Option(help="Number of arms.", max=_LARGEST)
HORIZON = Option(help="Rounds in a trial.", max=_LARGEST)
EPSILON = Option(0.0, help="Largest distance between an observed and a true context.")
DELTA = Option(0.05, help="Probability with which the bound may fail.")
SIGMA = Option(0.05, help="Sub-Gaussian scale of the reward noise.")
TIGHT = Option(False, "--tight", help="Use the smaller, as valid p_t = sqrt(t - 1).")
SEEDS = Option("100", help=f"One trial on each, without gaps: {options.SEEDS}")
JSON = options.JSON


@app.command()
def bound(
    d: int = D,
    k: int = K,
    horizon: int = HORIZON,
    epsilon: float = EPSILON,
    delta: float = DELTA,
    sigma: float = SIGMA,
    tight: bool = TIGHT,
    json: bool = JSON,
) -> None:
    """Compute the finite-time bound of the theorem, term by term."""
    report = bound_report(
        LinearSetting(d=d, k=k, epsilon=epsilon, delta=delta, sigma=sigma, tight=tight), horizon
    )
    if json:
        print_json(report)
    else:
        for table in tables.bound_tables(report):
            show_table(table)
        print(*tables.bound_sentences(report), sep="\n")


@app.command()
def simulate(
    d: int = Option(5, help="Dimension of the contexts."),
    k: int = Option(10, help="Number of arms."),
    horizon: int = Option(4096, help="Rounds in a trial."),
    epsilon: float = EPSILON,
    delta: float = DELTA,
    sigma: float = SIGMA,
    tight: bool = TIGHT,
    adversary: str = Option(
        "random", help=f"Adversary that chooses the true contexts: {', '.join(ADVERSARIES)}."
    ),
    noise: str = Option("gaussian", help=f"Reward noise: {', '.join(NOISES)}."),
    error: str = Option("sphere", help=f"Direction of the measurement error: {', '.join(ERRORS)}."),
    schedule: str = Option(
        "constant",
        help=f"How large the error is in each round, at most epsilon: {', '.join(SCHEDULES)}.",
    ),
    inflate: bool = Option(True, help="Sample with nu_t as analysed, or with sigma as is usual."),
    growth: bool = Option(False, "--growth", help="Also vary epsilon, d and K, and fit exponents."),
    seeds: str = SEEDS,
    out: Path = Option(
        None,
        help="Picture to write; those of promises and growth go beside it. Default: theory.png, none with --json.",
    ),
    json: bool = JSON,
) -> None:
    """Simulate the algorithm as analysed, and compare with the bound and every promise of the
    proof."""
    setting = LinearSetting(d=d, k=k, epsilon=epsilon, delta=delta, sigma=sigma, tight=tight)
    errors = {"noise": noise, "error": error, "inflate": inflate, "schedule": schedule}
    scenario = Scenario.from_mapping(
        {"adversary": adversary, **errors, "horizon": horizon, **_seeds(seeds)}
    )
    picture = None if json and out is None else _picture(out or Path("theory.png"))
    runs = 1 + (sum(len(values) for _, values in _SWEEPS) if growth else 0)
    with _bar("simulating", runs * scenario.horizon) as advance:
        result = simulation.simulate(setting, scenario, on_round=advance)
        exponents = [simulation.horizon_growth(result)]
        for axis, choices in _SWEEPS if growth else ():
            exponents.append(
                simulation.vary(setting, scenario, axis=axis, values=choices, on_round=advance)
            )
    fitted = [exponent for exponent in exponents if exponent is not None]
    report = simulation_report(result, fitted)
    if json:
        print_json(report)
    else:
        for table in tables.simulation_tables(report):
            show_table(table)
        print(f"{report['rounds_per_second']:,.0f} rounds a second")
    if picture is not None:
        _draw(result, fitted if growth else [], picture)


@app.command()
def check(
    horizon: int = Option(2048, help="Rounds in a trial."), seeds: str = SEEDS, json: bool = JSON
) -> None:
    """Check every promise of the proof under every adversary and noise, and several errors."""
    cases = list(simulation.configurations(horizon=horizon, **_seeds(seeds)))
    with _bar("checking", len(cases) * cases[0][1].horizon) as advance:
        reports = [
            simulation_report(simulation.simulate(setting, scenario, on_round=advance))
            for setting, scenario in cases
        ]
    if json:
        print_json(reports)
    else:
        show_table(tables.check_table(reports))
        show_table(tables.steps_table(reports))


@app.command()
def features(
    problem: str = Argument("rotating-vector-32", help="Id of a linear problem."),
    policy: str = Option("rnlps", help="Id of a neural-linear policy."),
    horizon: int = Option(2048, min=1, help="Rounds in the trial."),
    seed: int = Option(0, min=0, help="Seed of the trial."),
    set_: list[str] = options.SET,
    out: Path = Option(None, help="Picture to write. Default: features.png, none with --json."),
    json: bool = JSON,
) -> None:
    """Measure the effective measurement error of learned features over training, beside the
    regret."""
    from tidepull.cli.options import split_settings
    from tidepull.paper.theory.effective_error import effective_error

    named_problem, named_policy = split_settings(problem, policy, set_)
    picture = None if json and out is None else _picture(out or Path("features.png"))
    with _bar(f"{policy} on {problem}", horizon) as advance:
        measured = effective_error(
            named_problem, named_policy, horizon=horizon, seed=seed, on_round=advance
        )
    report = measured.as_plain()
    if json:
        print_json(report)
    else:
        show_table(tables.features_table(f"{policy} on {problem}, seed {seed}", report))
        correlation = report["correlation"]
        known = ""
        if correlation is not None:
            known = f"; correlation of error and regret a round {correlation:.2f}"
        print(f"regret {report['regret']:.1f}{known}")
    if picture is not None:
        from tidepull.paper.theory import plots as theory_plots

        theory_plots.effective_error(
            measured, title=f"{policy} on {problem}, seed {seed}", path=picture
        )
        say(f"picture: [bold]{picture}[/]")


def _picture(path: Path) -> Path:
    """Refuse a picture that could not be written before the work starts, not after it."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"--out must end in .png, .svg or .pdf, got '{path}'")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _draw(result: simulation.Simulation, exponents: list[simulation.Exponent], path: Path) -> None:
    from tidepull.paper.theory import plots as theory_plots

    promises = path.with_stem(f"{path.stem}-promises")
    growth = path.with_stem(f"{path.stem}-growth")
    theory_plots.regret_against_bound(result, path=path)
    theory_plots.promises(result, path=promises)
    drawn = [path, promises]
    if exponents:
        theory_plots.growth(exponents, path=growth)
        drawn.append(growth)
    say("pictures: " + ", ".join(f"[bold]{each}[/]" for each in drawn))


def _seeds(text: str) -> dict[str, int]:
    """The first seed and how many there are; the simulation plays them all at once."""
    seeds = options.seeds_of(text)
    if len(seeds) != seeds[-1] - seeds[0] + 1:
        raise ParameterError(
            f"--seeds: write them without gaps, such as {seeds[0]}-{seeds[-1]}, got {text}"
        )
    return {"seed": seeds[0], "seeds": len(seeds)}


@contextmanager
def _bar(description: str, total: int) -> Iterator[Callable[[int], None]]:
    with progress(description, total) as bar:
        yield lambda _: bar.advance(bar.task_ids[0])
