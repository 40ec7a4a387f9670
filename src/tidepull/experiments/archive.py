"""Results outside stores: archives as CSV that can be kept with the source, flat exports, and
rewards read from CSV.

    FOLDER/SUITE.csv     one line for each trial that the suite asked for: names, seed, totals, times
    FOLDER/shared.json   what many lines share: worlds, learners and origins by short keys, texts of suites, hardware

An archive has every trial's totals, without its rounds. Rows that are read back are those that the
store gave, without diagnostics and machines' names. A line without totals is a trial that was not
played, or failed; `fault` says which. With totals and the fault `unfinished` it is no result.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tidepull._internal.files import explained, write_whole
from tidepull.errors import InputError, ParameterError, WrongStoreError
from tidepull.experiments.grid import seeds_text
from tidepull.experiments.rows import Plan, Planned, Row, Rows, asked_trials
from tidepull.experiments.spec import canonical
from tidepull.experiments.store import arrow

FORMAT = 1
SHARED = "shared.json"
MISSING = "missing"
UNFINISHED = "unfinished"
_COLUMNS = (
    "hash", "problem", "name", "setting", "delay", "horizon", "seed", "problem_seed", "reward", "regret", "optimal",
    "seconds", "cpu_seconds", "world", "learner", "origin", "fault",
)  # fmt: skip

_FLOATS = ("reward", "regret", "optimal", "seconds", "cpu_seconds")
_NAMES = ("problem", "name", "setting")


@dataclass(slots=True)
class Archive:
    """Rows of each suite, trials that it lacks (id and hash to why), the suites' texts, and the
    hardware.

    `unfinished` are trials of grids that halving has searched and that were not played in full:
    they are no results, and need not be played again.
    """

    rows: dict[str, list[Row]] = field(default_factory=dict)
    unfinished: dict[str, list[Row]] = field(default_factory=dict)
    lost: dict[str, dict[tuple[Planned, str], str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    hardware: tuple[str, ...] = ()

    def loaded(self, suite: str | None = None) -> Rows:
        """What `load_rows` gives of a store."""
        suites = list(self.rows) if suite is None else [suite]
        lost = [(*pair, why) for name in suites for pair, why in self.lost[name].items()]
        return Rows(
            rows=tuple(row for name in suites for row in self.rows[name]),
            missing=tuple(trial.id for trial, _, why in lost if why == MISSING),
            damaged={},
            failed={trial.id: why for trial, _, why in lost if why != MISSING},
            lost=tuple((trial.id, hash) for trial, hash, _ in lost),
        )


def is_archive(folder: Path) -> bool:
    """Whether a folder holds results that `write_archive` wrote."""
    return (folder / SHARED).is_file()


def gathered(plans: Sequence[Plan], loaded: Rows, before: Archive, hardware: str) -> Archive:
    """What a store holds of its plans; what it lacks or was not asked for, and other suites, come
    from `before`.

    A store that played a part of a suite (`--only`) is no reason to lose the rest; another text is
    another suite, and a trial of an earlier version of its policy is not what the plan asks for. A
    grid that `before` has searched by halving comes in when all of it was played, and is kept as
    unfinished until then.
    """
    archive = Archive(hardware=tuple(dict.fromkeys((*before.hardware, hardware))))
    results = {row.hash: row for rows in before.rows.values() for row in rows}
    known = {row.hash: row for rows in before.unfinished.values() for row in rows} | results
    stored = {(row.suite, row.hash, row.name, row.setting): row for row in loaded.rows}
    everything = {*known, *(row.hash for row in loaded.rows)}
    for suite in before.rows:
        if suite not in {plan.suite for plan in plans}:
            archive.rows[suite], archive.texts[suite] = before.rows[suite], before.texts[suite]
            archive.lost[suite] = before.lost.get(suite, {})
            archive.unfinished[suite] = before.unfinished.get(suite, [])
    every = (*plans, *_plans(before))
    for plan in plans:
        rows: list[Row] = []
        rest: list[Row] = []
        lost = {}
        asked = asked_trials(plan, every, everything)
        asked_ids = {trial.id for trial in asked}
        for trial in plan.trials:
            row = stored.get((plan.suite, trial.hash, trial.name, trial.setting))
            if row is None and trial.hash in known:
                names: Any = {name: getattr(trial, name) for name in _NAMES}
                row = replace(known[trial.hash], suite=plan.suite, **names)
            if row is None and trial.id in asked_ids:
                lost[trial, trial.hash] = loaded.failed.get(trial.id, MISSING)
            elif row is not None and (trial.id in asked_ids or trial.hash not in results):
                there = rows if trial.id in asked_ids else rest
                there.append(replace(row, machine="", diagnostics={}))
        if before.texts.get(plan.suite) == plan.text:
            rows += [row for row in before.rows[plan.suite] if _planned(row).id not in asked_ids]
            planned = {trial.id for trial in plan.trials}
            earlier = before.unfinished.get(plan.suite, [])
            rest += [row for row in earlier if _planned(row).id not in planned]
            lost |= {
                (trial, hash): why
                for (trial, hash), why in before.lost[plan.suite].items()
                if trial.id not in asked_ids
            }
        archive.rows[plan.suite], archive.lost[plan.suite], archive.texts[plan.suite] = (
            rows,
            lost,
            plan.text,
        )
        archive.unfinished[plan.suite] = rest
    return archive


def _plans(archive: Archive) -> Iterator[Plan]:
    for suite, rows in archive.rows.items():
        yield Plan(suite, archive.texts[suite], tuple(_planned(row) for row in rows))


def _planned(row: Row) -> Planned:
    return Planned(row.hash, row.problem, row.name, row.setting, row.seed, row.delay)


def write_archive(archive: Archive, folder: Path) -> None:
    """Write all files of the archive; files of suites that it does not have are removed."""
    shared: dict[str, dict[str, Any]] = {"worlds": {}, "learners": {}, "origins": {}}
    suites: dict[str, dict[str, Any]] = {}
    for suite, rows in archive.rows.items():
        lines = [_line(row, shared) for row in rows]
        rest = archive.unfinished.get(suite, [])
        lines += [{**_line(row, shared), "fault": UNFINISHED} for row in rest]
        for (trial, hash), why in archive.lost.get(suite, {}).items():
            names = {name: getattr(trial, name) for name in (*_NAMES, "delay", "seed")}
            lines.append({"hash": hash, **names, "fault": why})
        write_whole(folder / f"{suite}.csv", _csv(lines, _COLUMNS))
        suites[suite] = {"lines": len(lines), "text": archive.texts[suite]}
    content = {"format": FORMAT, "hardware": list(archive.hardware), "suites": suites, **shared}
    write_whole(folder / SHARED, _lines(content).encode())
    for file in folder.glob("*.csv"):
        if file.stem not in archive.rows and _is_ours(file):
            file.unlink()


def read_archive(folder: Path) -> Archive:
    """All that `write_archive` wrote; an empty archive where there is none."""
    if not is_archive(folder):
        return Archive()
    with explained("read", folder):
        shared = _shared(folder)
        archive = Archive(hardware=tuple(shared["hardware"]))
        for suite, entry in shared["suites"].items():
            archive.texts[suite] = entry["text"]
            with (folder / f"{suite}.csv").open(newline="", encoding="utf-8") as text:
                lines = list(csv.DictReader(text))
            if len(lines) != entry["lines"]:
                raise WrongStoreError(
                    f"{folder / suite}.csv was edited or cut off: it has {len(lines)} trials, not "
                    f"{entry['lines']}"
                )
            with _sound(folder / f"{suite}.csv"):
                archive.rows[suite], archive.unfinished[suite] = (
                    [_row(suite, line, shared) for line in lines if line["fault"] == fault]
                    for fault in ("", UNFINISHED)
                )
                faults = (line for line in lines if line["fault"] not in ("", UNFINISHED))
                archive.lost[suite] = dict(map(_lost, faults))
    return archive


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, ValueError, TypeError) as error:
        raise WrongStoreError(f"{path} was edited or cut off ({error!r})") from None


def _shared(folder: Path) -> dict[str, Any]:
    path, parts = folder / SHARED, ("hardware", "suites", "worlds", "learners", "origins")
    with _sound(path):
        shared = json.loads(path.read_text(encoding="utf-8"))
        if (version := shared["format"]) != FORMAT:
            raise WrongStoreError(
                f"{path} has format {version}; this version reads format {FORMAT}"
            )
        return {name: shared[name] for name in parts}


def _line(row: Row, shared: dict[str, dict[str, Any]]) -> dict[str, Any]:
    world = {"problem": row.problem_id, "parameters": row.problem_parameters, "remark": row.remark}
    learner = {"policy": row.policy, "parameters": row.policy_parameters}
    return {
        **{name: getattr(row, name) for name in _COLUMNS if hasattr(row, name)},
        "seconds": round(row.seconds, 3),
        "cpu_seconds": round(row.cpu_seconds, 3),
        "world": _keyed(shared["worlds"], world),
        "learner": _keyed(shared["learners"], learner),
        "origin": _keyed(shared["origins"], {"versions": row.versions, "code": row.code}),
    }


def _row(suite: str, line: Mapping[str, str], shared: Mapping[str, Any]) -> Row:
    world, learner = shared["worlds"][line["world"]], shared["learners"][line["learner"]]
    parts: dict[str, Any] = {
        **{name: line[name] for name in ("hash", *_NAMES, "delay")},
        **{name: int(line[name]) for name in ("horizon", "seed", "problem_seed")},
        **{name: float(line[name]) for name in _FLOATS},
        **shared["origins"][line["origin"]],
    }
    return Row(
        suite=suite,
        problem_id=world["problem"],
        problem_parameters=world["parameters"],
        remark=world["remark"],
        policy=learner["policy"],
        policy_parameters=learner["parameters"],
        machine="",
        diagnostics={},
        **parts,
    )


def _lost(line: Mapping[str, str]) -> tuple[tuple[Planned, str], str]:
    names = (line["problem"], line["name"], line["setting"], int(line["seed"]), line["delay"])
    return (Planned(line["hash"], *names), line["hash"]), line["fault"]


def _keyed(table: dict[str, Any], content: Mapping[str, Any]) -> str:
    """A short key for the content, the same in every archive."""
    key = sha256(canonical(content).encode()).hexdigest()[:10]
    table[key] = content
    return key


def _is_ours(file: Path) -> bool:
    with file.open(encoding="utf-8") as text:
        return text.readline().strip() == ",".join(_COLUMNS)


def _lines(content: Mapping[str, Any]) -> str:
    """JSON with a line for each entry of each part, so that a change is a small one."""
    parts = ",\n".join(f"{json.dumps(key)}: {_part(value)}" for key, value in content.items())
    return "{\n" + parts + "\n}\n"


def _part(value: Any) -> str:
    if not isinstance(value, Mapping):
        return json.dumps(value)
    inner = [f" {json.dumps(key)}: {json.dumps(value[key])}" for key in sorted(value)]
    return "{\n" + ",\n".join(inner) + "\n}"


_GROUP = ("suite", "problem", "name", "setting", "policy", "policy_parameters", "horizon", "delay")


def export(
    rows: Sequence[Row],
    path: Path,
    *,
    by_setting: bool = False,
    columns: Sequence[str] | None = None,
) -> int:
    """Write the table in the format that the file's ending asks for; returns the number of
    lines."""
    lines = summarise(rows) if by_setting else [_flat(row) for row in rows]
    if columns and lines:
        unknown = [name for name in columns if name not in lines[0]]
        if unknown:
            raise ParameterError(
                f"there is no column '{unknown[0]}'; there are: {', '.join(lines[0])}"
            )
        lines = [{name: line[name] for name in columns} for line in lines]
    writers = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
    if path.suffix not in writers:
        raise ParameterError(f"the export must end in {', '.join(writers)}, got '{path.name}'")
    write_whole(path, writers[path.suffix](lines))
    return len(lines)


def summarise(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One line for each problem and setting: how many trials, mean and standard deviation (ddof =
    1)."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        flat = _flat(row)
        groups.setdefault(tuple(flat[name] for name in _GROUP), []).append(row)
    return [
        {
            **dict(zip(_GROUP, key, strict=True)),
            "seeds": seeds_text([row.seed for row in group]),
            "trials": len(group),
            **_mean_and_std("reward", group),
            **_mean_and_std("regret", group),
            "cpu_seconds": round(sum(row.cpu_seconds for row in group), 3),
            "remark": group[0].remark,
        }
        for key, group in groups.items()
    ]


def _flat(row: Row) -> dict[str, Any]:
    return {
        key: canonical(value) if isinstance(value, dict) else value
        for key, value in asdict(row).items()
    }


def _mean_and_std(name: str, group: list[Row]) -> dict[str, float | None]:
    values = np.array([getattr(row, name) for row in group])
    std = round(float(values.std(ddof=1)), 6) if len(values) > 1 else None
    return {f"{name}_mean": round(float(values.mean()), 6), f"{name}_std": std}


def _csv(lines: list[dict[str, Any]], columns: Sequence[str] | None = None) -> bytes:
    """CSV with a header; the columns are those of the first line where they are not given."""
    text = io.StringIO()
    columns = columns or (list(lines[0]) if lines else [])
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().encode()


def _jsonl(lines: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _parquet(lines: list[dict[str, Any]]) -> bytes:
    pa, pq = arrow()
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(lines), buffer, compression="zstd")
    return buffer.getvalue()


def known_rewards(paths: Iterable[Path]) -> dict[str, float]:
    """From hash to cumulative reward; a folder stands for all its CSV files that have both columns.

    Lines without a reward (trials that a suite asked for and that were not played) are left out.
    """
    rewards: dict[str, float] = {}
    for path in paths:
        files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        for file in files:
            rewards.update(_rewards(file, required=not path.is_dir()))
    return rewards


def _rewards(file: Path, *, required: bool) -> dict[str, float]:
    with explained("read", file), file.open(newline="", encoding="utf-8") as text:
        reader = csv.DictReader(text)
        columns = reader.fieldnames or []
        if "hash" not in columns or "reward" not in columns:
            if required:
                raise InputError(
                    f"{file} has no columns 'hash' and 'reward'; `tidepull store export` writes "
                    "them"
                )
            return {}
        texts = {line["hash"]: line["reward"] for line in reader if line["reward"]}
    try:
        rewards = {hash: float(reward) for hash, reward in texts.items()}
    except (TypeError, ValueError) as error:
        raise InputError(f"{file}: a reward is no number ({error})") from None
    if wrong := [hash for hash, reward in rewards.items() if not math.isfinite(reward)]:
        raise InputError(f"{file}: the reward of {wrong[0]} is not finite")
    return rewards
