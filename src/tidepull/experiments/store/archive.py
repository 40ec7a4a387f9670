"""A store's results as CSV that can be kept with the source: every trial's totals, without its rounds.

    FOLDER/SUITE.csv     one line for each trial that the suite asked for: names, seed, totals, times
    FOLDER/shared.json   what many lines share: worlds, learners and origins by short keys, texts of suites, hardware

Rows that are read back are those that the store gave, without diagnostics and machines' names. A line without totals
is a trial that was not played, or failed; `fault` says which.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from tidepull._internal.files import explained, write_whole
from tidepull.errors import WrongStoreError
from tidepull.experiments.store.plan import Plan, Planned
from tidepull.experiments.store.rows import Row, Rows, asked_trials
from tidepull.experiments.suites.spec import canonical

FORMAT = 1
SHARED = "shared.json"
MISSING = "missing"
_COLUMNS = (
    "hash", "problem", "name", "setting", "delay", "horizon", "seed", "problem_seed", "reward", "regret", "optimal",
    "seconds", "cpu_seconds", "world", "learner", "origin", "fault",
)  # fmt: skip


@dataclass(slots=True)
class Archive:
    """Rows of each suite, trials that it lacks (id and hash to why), the suites' texts, and the hardware."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    lost: dict[str, dict[tuple[Planned, str], str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    hardware: tuple[str, ...] = ()

    def loaded(self, suite: str | None = None) -> Rows:
        """What `load_rows` gives of a store."""
        suites = list(self.rows) if suite is None else [suite]
        lost = [(trial, hash, why) for name in suites for (trial, hash), why in self.lost[name].items()]
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
    """What a store holds of its plans; what it lacks or was not asked for, and other suites, come from `before`.

    A store that played a part of a suite (`--only`) is no reason to lose the rest; another text is another suite.
    """
    made = Archive(hardware=tuple(dict.fromkeys((*before.hardware, hardware))))
    known = {row.hash: row for rows in before.rows.values() for row in rows}
    found = {(row.suite, row.hash, row.name, row.setting): row for row in loaded.rows}
    everything = {*known, *(row.hash for row in loaded.rows)}
    for suite in before.rows:
        if suite not in {plan.suite for plan in plans}:
            made.rows[suite], made.texts[suite] = before.rows[suite], before.texts[suite]
            made.lost[suite] = before.lost.get(suite, {})
    for plan in plans:
        rows, lost = [], {}
        for trial in asked_trials(plan, plans, everything):
            row = found.get((plan.suite, trial.hash, trial.name, trial.setting))
            if row is None and trial.hash in known:
                row = replace(
                    known[trial.hash],
                    suite=plan.suite,
                    problem=trial.problem,
                    name=trial.name,
                    setting=trial.setting,
                )
            if row is None:
                lost[trial, trial.hash] = loaded.failed.get(trial.id, MISSING)
            else:
                rows.append(replace(row, machine="", diagnostics={}))
        if before.texts.get(plan.suite) == plan.text:
            told = {(row.hash, row.name, row.setting) for row in rows}
            told |= {(hash, trial.name, trial.setting) for trial, hash in lost}
            rows += [row for row in before.rows[plan.suite] if (row.hash, row.name, row.setting) not in told]
            lost |= {
                (trial, hash): why
                for (trial, hash), why in before.lost[plan.suite].items()
                if (hash, trial.name, trial.setting) not in told
            }
        made.rows[plan.suite], made.lost[plan.suite], made.texts[plan.suite] = rows, lost, plan.text
    return made


def write_archive(archive: Archive, folder: Path) -> None:
    """Write all files of the archive; files of suites that it does not have are removed."""
    shared: dict[str, dict[str, Any]] = {"worlds": {}, "learners": {}, "origins": {}}
    for suite, rows in archive.rows.items():
        lines = [_line(row, shared) for row in rows]
        for (trial, hash), why in archive.lost.get(suite, {}).items():
            names = {name: getattr(trial, name) for name in ("problem", "name", "setting", "delay", "seed")}
            lines.append({"hash": hash, **names, "fault": why})
        text = io.StringIO()
        writer = csv.DictWriter(text, _COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        write_whole(folder / f"{suite}.csv", text.getvalue().encode())
    suites = {
        suite: {"lines": len(rows) + len(archive.lost.get(suite, {})), "text": archive.texts[suite]}
        for suite, rows in archive.rows.items()
    }
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
        made = Archive(hardware=tuple(shared["hardware"]))
        for suite, said in shared["suites"].items():
            made.texts[suite] = said["text"]
            with (folder / f"{suite}.csv").open(newline="", encoding="utf-8") as text:
                lines = list(csv.DictReader(text))
            if len(lines) != said["lines"]:
                raise WrongStoreError(
                    f"{folder / suite}.csv was edited or cut off: it has {len(lines)} trials, not {said['lines']}"
                )
            try:
                made.rows[suite] = [_row(suite, line, shared) for line in lines if not line["fault"]]
                made.lost[suite] = dict(_lost(line) for line in lines if line["fault"])
            except (KeyError, ValueError, TypeError) as error:
                raise WrongStoreError(f"{folder / suite}.csv was edited or cut off ({error!r})") from None
    return made


def _shared(folder: Path) -> dict[str, Any]:
    try:
        shared = json.loads((folder / SHARED).read_text(encoding="utf-8"))
        if shared["format"] != FORMAT:
            raise WrongStoreError(
                f"{folder / SHARED} has format {shared['format']}; this version reads format {FORMAT}"
            )
        return {name: shared[name] for name in ("hardware", "suites", "worlds", "learners", "origins")}
    except (ValueError, KeyError, TypeError) as error:
        raise WrongStoreError(f"{folder / SHARED} was edited or cut off ({error!r})") from None


def _line(row: Row, shared: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        **{name: getattr(row, name) for name in _COLUMNS if hasattr(row, name)},
        "seconds": round(row.seconds, 3),
        "cpu_seconds": round(row.cpu_seconds, 3),
        "world": _keyed(
            shared["worlds"],
            {"problem": row.problem_id, "parameters": row.problem_parameters, "remark": row.remark},
        ),
        "learner": _keyed(shared["learners"], {"policy": row.policy, "parameters": row.policy_parameters}),
        "origin": _keyed(shared["origins"], {"versions": row.versions, "code": row.code}),
    }


def _row(suite: str, line: Mapping[str, str], shared: Mapping[str, Any]) -> Row:
    world, learner = shared["worlds"][line["world"]], shared["learners"][line["learner"]]
    origin = shared["origins"][line["origin"]]
    return Row(
        suite=suite,
        hash=line["hash"],
        problem=line["problem"],
        name=line["name"],
        setting=line["setting"],
        problem_id=world["problem"],
        problem_parameters=world["parameters"],
        policy=learner["policy"],
        policy_parameters=learner["parameters"],
        horizon=int(line["horizon"]),
        seed=int(line["seed"]),
        problem_seed=int(line["problem_seed"]),
        reward=float(line["reward"]),
        regret=float(line["regret"]),
        optimal=float(line["optimal"]),
        seconds=float(line["seconds"]),
        cpu_seconds=float(line["cpu_seconds"]),
        machine="",
        remark=world["remark"],
        diagnostics={},
        versions=origin["versions"],
        code=origin["code"],
        delay=line["delay"],
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
    return (
        "{\n" + ",\n".join(f"{json.dumps(key)}: {_part(value)}" for key, value in content.items()) + "\n}\n"
    )


def _part(value: Any) -> str:
    if not isinstance(value, Mapping):
        return json.dumps(value)
    inner: Iterable[str] = (f" {json.dumps(key)}: {json.dumps(value[key])}" for key in sorted(value))
    return "{\n" + ",\n".join(inner) + "\n}"
