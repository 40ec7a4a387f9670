"""Logs in every format come out the same; what is wrong with one is said in a sentence, with its
line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.logs import writing
from tidepull import logs
from tidepull.agent.agent import Agent
from tidepull.errors import DataError, ParameterError


@pytest.mark.parametrize("format", writing.FORMATS)
def test_every_format_is_guessed_and_read_alike(format: str, tmp_path: Path) -> None:
    name, write = writing.FORMATS[format]
    table = writing.rows()
    write(tmp_path / name, table)
    log = logs.read(tmp_path / name)
    assert log.reading.format == format.split()[0]
    assert log.reading.bad.count == 0
    assert log.arms == writing.ARMS
    assert [log.arms[arm] for arm in log.arm] == [row["arm"] for row in table]
    assert log.reward.tolist() == [row["reward"] for row in table]
    assert log.propensity is not None
    assert np.allclose(log.propensity, 1 / 3, atol=1e-15)
    age = log.context["u.age" if format == "vw-text" else "age"]
    assert age.values.tolist() == [row["age"] for row in table]
    assert "Timestamp" not in log.context
    if format != "vw-text":
        assert log.time is not None
        assert log.dated
        assert np.allclose(log.time, writing.START + 1800 * np.arange(len(table)))
        device = log.context["device"]
        assert device.labels is not None
        assert [device.labels[code] for code in device.values] == [row["device"] for row in table]


def test_the_export_of_an_agent_is_read_with_contexts_and_late_rewards(tmp_path: Path) -> None:
    with Agent.memory(arms=["a", "b"], policy="bernoulli-ts", seed=1) as agent:
        for n in range(30):
            decision = agent.choose({"age": n}, at=1e9 + n)
            if n % 3:
                agent.reward(decision.id, float(n % 2), at=1e9 + n + 5)
        for ending in ("csv", "jsonl", "parquet"):
            agent.export(tmp_path / f"log.{ending}")
    for ending in ("csv", "jsonl", "parquet"):
        log = logs.read(tmp_path / f"log.{ending}")
        assert log.reading.bad.count == 0
        assert len(log) == 30
        assert int(np.isnan(log.reward).sum()) == 10
        assert log.context["age"].values.tolist() == list(range(30))
        assert log.time is not None
        assert log.paid_at is not None
        late = log.paid_at - log.time
        assert set(late[~np.isnan(late)]) == {5.0}


def test_an_obp_dictionary_is_read_with_arms_that_were_never_played(tmp_path: Path) -> None:
    given = {
        "n_rounds": 4, "n_actions": 3, "action": np.array([0, 1, 1, 0]), "reward": np.array([0, 1, 0, 1.0]),
        "pscore": np.full(4, 0.5), "context": np.arange(8.0).reshape(4, 2), "position": None, "action_context": None,
    }  # fmt: skip
    held: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    np.savez(tmp_path / "log.npz", **held)
    for source in (given, tmp_path / "log.npz"):
        log = logs.read(source)
        assert log.arms == ("0", "1", "2")
        assert log.context["context_1"].values.tolist() == [1, 3, 5, 7]
        assert log.time is None
        assert "1 of 3 arms were never played" in log.preview()


def test_bad_rows_are_counted_and_named_with_their_line(tmp_path: Path) -> None:
    lines = ["time,arm,reward,propensity"] + [f"{t},a{t % 2},1,0.5" for t in range(100)]
    lines[3] = "2,a0,nonsense,0.5"
    lines[5] = "4,a0,1"
    lines[6] = ""
    lines[7] = "6,,0,0.5"
    lines[9] = "8,a0,0,1.5"
    lines[10] = "later,a0,0,0.5"
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n\n")
    log = logs.read(tmp_path / "log.csv")
    assert len(log) == 94
    assert log.reading.bad.count == 5
    assert log.reading.bad.first == (
        (4, "reward is no number: 'nonsense'"),
        (6, "3 cells instead of 4"),
        (8, "arm is missing"),
        (10, "propensity is not above 0 and at most 1: '1.5'"),
        (11, "time is no time: 'later'"),
    )
    assert "line 8: arm is missing" in log.preview()


def test_bad_lines_of_json_are_named(tmp_path: Path) -> None:
    table = writing.rows()
    writing.jsonl(tmp_path / "log.jsonl", table)
    text = (tmp_path / "log.jsonl").read_text().splitlines()
    text[7], text[9] = text[7][:20], "[1, 2]"
    (tmp_path / "log.jsonl").write_text("\n".join(text))
    log = logs.read(tmp_path / "log.jsonl")
    assert [line for line, _ in log.reading.bad.first] == [8, 10]
    assert len(log) == 58


def test_a_key_that_appears_late_is_part_of_the_context(tmp_path: Path) -> None:
    table = writing.rows(1500)
    table[1400]["visits"] = 3
    writing.jsonl(tmp_path / "log.jsonl", table)
    visits = logs.read(tmp_path / "log.jsonl").context["visits"].values
    assert visits[1400] == 3
    assert np.isnan(visits).sum() == 1499
    log = logs.read(tmp_path / "log.jsonl", context=["age"])
    assert list(log.context) == ["age"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("arm,reward\n", "has no rows"),
        ("who,reward\na,1\n", "no column looks like the arm"),
        ("arm,x\na,1\n", "no column looks like the reward"),
        (
            "arm,reward\na,x\nb,z\n",
            "2 of 2 rows cannot be read as csv (line 2: reward is no number: 'x')",
        ),
        ('{"arm": 1\n', "has no columns: no line can be read"),
    ],
)
def test_a_log_that_is_none_is_refused_in_one_sentence(
    text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(text)
    with pytest.raises(DataError) as error:
        logs.read(tmp_path / "log")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_damaged_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    table = writing.rows(5000)
    writing.parquet(tmp_path / "log.parquet", table)
    whole = (tmp_path / "log.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    writing.csv(tmp_path / "log.csv", table)
    packed = gzip.compress((tmp_path / "log.csv").read_bytes())
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    writing.jsonl(tmp_path / "log.jsonl", table)
    packed = gzip.compress((tmp_path / "log.jsonl").read_bytes())
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "bytes.csv").write_bytes(b"arm,reward\n\xff\xfe,1\n")
    for name in ("cut.parquet", "cut.csv.gz", "cut.jsonl.gz", "bytes.csv", "missing.csv"):
        with pytest.raises(DataError, match=name.replace(".", r"\.")) as error:
            logs.read(tmp_path / name)
        assert "\n" not in str(error.value)


def test_peculiar_logs_are_read_with_a_remark(tmp_path: Path) -> None:
    table = writing.rows()
    shuffled = [table[n] for n in np.random.default_rng(0).permutation(len(table))]
    writing.csv(tmp_path / "unsorted.csv", shuffled)
    log = logs.read(tmp_path / "unsorted.csv")
    assert log.time is not None
    assert (np.diff(log.time) >= 0).all()
    assert log.reward.tolist() == [row["reward"] for row in table]
    assert "not in the order of time" in log.preview()
    cases = {
        "dated in the future": [{**row, "at": row["at"].replace("2026", "2126")} for row in table],
        "only one arm": [{**row, "arm": "a"} for row in table],
        "every reward is 1": [{**row, "reward": 1.0} for row in table],
        "no propensities": [{k: v for k, v in row.items() if k != "propensity"} for row in table],
        "no row has a reward": [{**row, "reward": None} for row in table],
    }
    for said, rows in cases.items():
        writing.jsonl(tmp_path / "log.jsonl", rows)
        assert said in logs.read(tmp_path / "log.jsonl").preview()


def test_named_columns_win_over_guessed_ones_and_wrong_names_are_told(tmp_path: Path) -> None:
    writing.csv(
        tmp_path / "log.csv", [{**row, "value": 7, "banner": "x"} for row in writing.rows()]
    )
    log = logs.read(tmp_path / "log.csv", arm="device", reward="value", context=["age"])
    assert log.arms == ("phone", "tv")
    assert set(log.reward) == {7.0}
    with pytest.raises(DataError, match="did you mean 'device'"):
        logs.read(tmp_path / "log.csv", arm="devise")
    with pytest.raises(ParameterError, match="format must be one of"):
        logs.read(tmp_path / "log.csv", format="xml")


def test_numbers_as_times_are_dates_where_they_are_that_large(tmp_path: Path) -> None:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        rows = [f"{(1.7e9 + n) * factor:.0f},a,1" for n in range(3)]
        (tmp_path / f"{unit}.csv").write_text("\n".join(["time,arm,reward", *rows]))
        log = logs.read(tmp_path / f"{unit}.csv")
        assert log.dated
        assert log.time is not None
        assert np.allclose(log.time, 1.7e9 + np.arange(3), atol=1e-6)
    (tmp_path / "rounds.csv").write_text("time,arm,reward\n1,a,0\n2,b,1\n")
    assert not logs.read(tmp_path / "rounds.csv").dated


def test_a_column_of_ids_is_left_out_of_the_context_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidepull.logs.cells.MOST_LABELS", 20)
    writing.csv(
        tmp_path / "log.csv", [{**row, "session": f"s{row['id']}"} for row in writing.rows(40)]
    )
    log = logs.read(tmp_path / "log.csv")
    assert "session" not in log.context
    assert "column 'session' has nearly as many texts as rows" in log.preview()


def test_arms_on_offer_are_known_where_they_change(tmp_path: Path) -> None:
    table = [
        {"arm": "a", "reward": 1, "propensity": 0.5, "available": ["a", "b"]},
        {"arm": "c", "reward": 0, "propensity": 1.0, "available": ["c"]},
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(row) for row in table))
    available = logs.read(tmp_path / "log.jsonl").available
    assert available is not None
    assert available.tolist() == [[True, True, False], [False, False, True]]


def test_single_lines_of_vowpal_wabbit_are_decisions_and_a_line_without_a_label_is_named(
    tmp_path: Path,
) -> None:
    lines = [f"{1 + n % 3}:{-(n % 2)}:0.25 |u age:{n} tv" for n in range(40)]
    lines[7] = "|u age:3"
    (tmp_path / "log.dat").write_text("\n".join(lines))
    log = logs.read(tmp_path / "log.dat")
    assert log.arms == ("1", "2", "3")
    assert log.reading.bad.first == ((8, "no label (action:cost:probability)"),)
    kept = [n for n in range(40) if n != 7]
    assert log.reward.tolist() == [float(n % 2) for n in kept]
    assert log.context["u.age"].values.tolist() == kept


def test_doubled_columns_and_times_of_two_units_are_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("arm,reward,arm\na,1,b\n")
    with pytest.raises(DataError, match="several columns 'arm'"):
        logs.read(tmp_path / "log.csv")
    (tmp_path / "log.csv").write_text("arm,reward,time\na,1,1700000000\nb,1,1700000000000\n")
    with pytest.raises(DataError, match="beyond the calendar; use one unit"):
        logs.read(tmp_path / "log.csv")


@pytest.mark.parametrize("format", [*writing.FORMATS, "agent"])
def test_altered_bytes_are_bad_rows_or_one_sentence_and_nothing_else(
    format: str, tmp_path: Path
) -> None:
    if format == "agent":
        path = tmp_path / "log.csv"
        context = '"{""age"": 3}"'
        rows = [f'd{n},{1e9 + n},a{n % 2},0.5,1.0,{context},"[""a0"",""a1""]"' for n in range(40)]
        path.write_text("\n".join(["id,at,arm,propensity,reward,context,available", *rows]))
    else:
        name, write = writing.FORMATS[format]
        path = tmp_path / name
        write(path, writing.rows(40))
    whole = path.read_bytes()
    logs.read(path).preview()
    rng = np.random.default_rng(0)
    said: list[str] = []
    for _ in range(60):
        altered = bytearray(whole)
        for _ in range(int(rng.integers(1, 6))):
            place = int(rng.integers(len(altered)))
            altered[place] = int(rng.choice([rng.integers(256), *b'",{}[]:0e-|\n ']))
        path.write_bytes(altered)
        try:
            log = logs.read(path, most_bad=1.0)
        except DataError as error:
            said.append(str(error))
            continue
        log.preview()
        assert len(list(log.decisions())) == len(log)
    assert not any("\n" in sentence for sentence in said)


def test_a_log_of_bad_rows_alone_is_refused_whatever_is_allowed(tmp_path: Path) -> None:
    for text in ("arm,reward\na,x\n", '{"arm": "a", "reward": "x"}\n', "shared |a\n|b\n"):
        (tmp_path / "log").write_text(text)
        with pytest.raises(DataError, match="rows cannot be read as"):
            logs.read(tmp_path / "log", most_bad=1.0)
