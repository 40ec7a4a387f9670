"""Columns that are recognised by their cells: dates, ids, and what is known only afterwards."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.unit.logs import writing
from tidepull import logs
from tidepull.errors import DataError
from tidepull.logs.cells import number_of
from tidepull.logs.log import parse_time
from tidepull.logs.reading import date_form, is_id

START = datetime(2026, 1, 30, 9, tzinfo=UTC).timestamp()


def shop(**columns: Callable[[int, float], Any]) -> list[dict[str, Any]]:
    """Banners with clicks, every two hours; `columns` are made of a row's number and reward."""
    rng = np.random.default_rng(3)
    table = []
    for n in range(400):
        reward = int(rng.random() < 0.3)
        row = {"banner": ["coffee", "dinner"][int(rng.integers(2))], "click": reward}
        table.append(row | {name: column(n, reward) for name, column in columns.items()})
    return table


def read(tmp_path: Path, table: list[dict[str, Any]], **options: Any) -> logs.Log:
    writing.csv(tmp_path / "shop.csv", table)
    return logs.read(tmp_path / "shop.csv", arm="banner", **options)


def moment(n: int) -> datetime:
    return datetime.fromtimestamp(START + 7200 * n, UTC)


FORMS: dict[str, Callable[[int], Any]] = {
    "ISO": lambda n: moment(n).isoformat(),
    "seconds": lambda n: int(moment(n).timestamp()),
    "milliseconds": lambda n: int(1000 * moment(n).timestamp()),
    "day first": lambda n: f"{moment(n):%d.%m.%Y %H:%M}",
    "day first, slashes": lambda n: f"{moment(n):%d/%m/%Y %H:%M:%S}",
    "month first": lambda n: f"{moment(n):%m/%d/%Y %I:%M %p}",
    "year first": lambda n: f"{moment(n):%Y/%m/%d %H:%M}",
    "month in words": lambda n: f"{moment(n):%d %b %Y %H:%M}",
}


@pytest.mark.parametrize("form", FORMS)
def test_dates_are_recognised_under_any_name_and_form(tmp_path: Path, form: str) -> None:
    log = read(tmp_path, shop(shown=lambda n, _: FORMS[form](n)))
    assert log.dated
    assert log.time is not None
    assert log.time.tolist() == [START + 7200 * n for n in range(400)]
    assert "shown" not in log.context
    assert (
        "column 'shown' has dates and is taken for the time (--time names another)" in log.preview()
    )


def test_a_local_form_is_read_under_a_usual_name_too(tmp_path: Path) -> None:
    log = read(tmp_path, shop(date=lambda n, _: f"{moment(n):%d.%m.%Y %H:%M}"))
    assert log.time is not None
    assert log.time[-1] == START + 7200 * 399
    assert "dates of 'date' are read as %d.%m.%Y %H:%M" in log.preview()


def test_day_and_month_are_told_apart_by_the_order_of_rows() -> None:
    days = [f"{day:02d}/03/2026" for day in range(1, 11)]
    assert date_form(days) == "%d/%m/%Y"
    assert date_form([f"{month:02d}/03/2026" for month in (1, 1, 2, 2, 3)]) is not None
    assert date_form([f"03/{day:02d}/2026" for day in range(1, 11)]) == "%m/%d/%Y"


def test_of_two_dates_the_earlier_is_the_decision_and_the_other_no_context(tmp_path: Path) -> None:
    table = shop(
        clicked_on=lambda n, reward: f"{moment(n + 1):%d.%m.%Y %H:%M}" if reward else "",
        shown_on=lambda n, _: moment(n).isoformat(),
        delivered_on=lambda n, _: moment(n + 30).isoformat(),
    )
    log = read(tmp_path, table)
    assert log.reading.roles["time"] == "shown_on"
    assert not log.context
    assert log.time is not None
    assert log.time[0] == START


@pytest.mark.parametrize(
    ("name", "cell"),
    [("visit", lambda n, _: f"v-{n:06d}"), ("visit_id", lambda n, _: 1_700_000_000 + 7 * (n * 37 % 400)),
     ("number", lambda n, _: 1_000_000_000 + n)],
)  # fmt: skip
def test_ids_are_recognised_and_copies_counted(
    tmp_path: Path, name: str, cell: Callable[[int, float], Any]
) -> None:
    table = shop(**{"at": lambda n, _: moment(n).isoformat(), name: cell})
    log = read(tmp_path, table + table[:4])
    assert log.reading.roles["id"] == name
    assert not log.context
    found = logs.diagnose(log, shuffles=99)
    assert found.overview.copies == 4
    assert any("4 rows have the id of an earlier one" in one for one in found.warnings)


def test_columns_that_repeat_or_measure_something_are_no_ids() -> None:
    rng = np.random.default_rng(0)
    assert not is_id("price", [f"{x:.6f}" for x in rng.random(500)])
    assert not is_id("cents", rng.integers(10**9, size=500).tolist())
    assert not is_id("user", [f"u{n // 2}" for n in range(500)])
    assert not is_id("page", [f"p{n}" for n in range(20)])


@pytest.mark.parametrize("miss", ["", "0"])
def test_what_is_known_only_afterwards_is_no_context(tmp_path: Path, miss: str) -> None:
    table = shop(
        revenue=lambda n, reward: f"{5 + n % 7}.5" if reward else miss,
        points=lambda _, reward: 10 * reward + 1,
        age=lambda n, _: 20 + n * 7 % 40,
    )
    log = read(tmp_path, table)
    assert list(log.context) == ["age"]
    assert any("column 'revenue' goes with the reward" in note for note in log.reading.notes)
    named = read(tmp_path, table, context=["revenue", "age"])
    assert list(named.context) == ["revenue", "age"]
    assert any("leave it out of --context" in note for note in named.reading.notes)


def test_labels_that_differ_by_case_or_blanks_are_one_arm(tmp_path: Path) -> None:
    table = shop()
    for row, label in zip(
        table, ["Coffee", " coffee", "COFFEE  ", "cof fee", "dinner "], strict=False
    ):
        row["banner"] = label
    log = read(tmp_path, table)
    assert log.arms == ("coffee", "dinner")
    (note,) = [note for note in log.reading.notes if "case or blanks" in note]
    assert "'Coffee' (1), 'COFFEE' (1), 'cof fee' (1) count as the arm 'coffee'" in note
    apart = read(tmp_path, table, arms=["coffee", "Coffee", "COFFEE", "cof fee", "dinner"])
    assert apart.n_arms == 5
    assert (apart.arm == 1).sum() == 1


def test_a_column_of_banners_is_the_arm_without_being_named(tmp_path: Path) -> None:
    text = "time,banner,click\n" + "".join(
        f"{1_780_272_000 + n},b{n % 2},{n % 3 == 0:d}\n" for n in range(40)
    )
    (tmp_path / "log.csv").write_text(text)
    assert list(logs.read(tmp_path / "log.csv").arms) == ["b0", "b1"]


def test_backtest_prints_a_table_with_its_caveats(tmp_path: Path) -> None:
    text = "time,banner,click,propensity\n" + "".join(
        f"{1_780_272_000 + 60 * n},b{n % 2},{n % 3 == 0:d},0.5\n" for n in range(400)
    )
    (tmp_path / "log.csv").write_text(text)
    shown = str(logs.backtest(logs.read(tmp_path / "log.csv"), ["random", "ucb"])).splitlines()
    assert shown[0].split() == ["policy", "estimator", "reward", "95%", "interval", "caveat"]
    assert shown[1].split()[:2] == ["logged", "mean"]
    assert any(line.endswith("rests on the model") for line in shown)
    assert any(line.startswith("ucb: it learnt from") for line in shown)


def test_cells_of_a_german_spreadsheet_are_read(tmp_path: Path) -> None:
    clicks, amounts = ("nein", "ja"), ("12,50", "1.204,75", "0,125", "")
    rows = [
        f"A-{n};{clicks[n // 4 % 2]};{amounts[n % 4]};{'rot' if n % 3 else 'blau'}"
        for n in range(80)
    ]
    path = tmp_path / "shop.csv"
    path.write_text("\n".join(["Nummer;Klick;Warenkorb;Banner", *rows]), encoding="utf-8-sig")
    log = logs.read(path, reward="Klick")
    assert log.reward[:8].tolist() == [0.0] * 4 + [1.0] * 4
    assert log.context["Warenkorb"].values[:3].tolist() == [12.5, 1204.75, 0.125]
    assert np.isnan(log.context["Warenkorb"].values[3])
    assert log.reading.roles["id"] == "Nummer"


def test_comma_of_thousands_is_not_taken_for_a_decimal_comma(tmp_path: Path) -> None:
    path = tmp_path / "shop.csv"
    path.write_text("banner;click\nred;1,250\nblue;2,500\n")
    with pytest.raises(DataError, match="reward is no number: '1,250'"):
        logs.read(path)


@pytest.mark.parametrize("where", ["header", "row"])
def test_text_that_is_not_utf8_names_the_fix(tmp_path: Path, where: str) -> None:
    path = tmp_path / "shop.csv"
    header, cell = ("gerät", "pc") if where == "header" else ("geraet", "gerät")
    path.write_bytes(f"banner,click,{header}\nred,1,{cell}\n".encode("latin-1"))
    with pytest.raises(DataError, match="is not UTF-8 text.*; save it as UTF-8"):
        logs.read(path)


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("1.234,50 €", 1234.5), ("$12", 12.0), ("-$1,234.50", -1234.5), ("CHF 1'234.50", 1234.5),
        ("1\u202f234,50\u00a0€", 1234.5), ("1.234 €", 1234.0), ("$1,234", 1234.0), ("(3.54)", -3.54),
        ("1,234,567", 1234567.0), ("12,5 %", 0.125), ("1.234", 1.234), ("Y", 1.0), ("n", 0.0),
    ],
)  # fmt: skip
def test_amounts_are_read_as_people_write_them(cell: str, number: float) -> None:
    assert number_of(cell) == pytest.approx(number)


@pytest.mark.parametrize(
    "cell", ["1,234", "02.03.2026", "12:30", "1,2,3", "(3", "€", "usd 5 €", "1.234.5", "A-12"]
)
def test_text_that_may_be_another_number_or_none_is_refused(cell: str) -> None:
    with pytest.raises(ValueError, match="no number"):
        number_of(cell)


@pytest.mark.parametrize(
    "text",
    ["2 de marzo de 2026 17:05", "2 mars 2026 à 17:05", "2. März 2026 17:05", "Mar 02 2026 05:05PM",
     "Mon Mar 02 2026 17:05:00 GMT+0000", "Mon, 02 Mar 2026 17:05:00 GMT", "02/03/2026 17h05",
     "02.03.2026 17.05"],
)  # fmt: skip
def test_dates_of_several_languages_and_programs_are_read(text: str) -> None:
    later = text.replace("2026", "2027")
    form = date_form([text, later])
    assert form is not None
    expected = datetime(2026, 3, 2, 17, 5, tzinfo=UTC).timestamp()
    assert parse_time(text, form) == expected


@pytest.mark.parametrize(
    ("encoding", "delimiter"), [("utf-16", "\t"), ("utf-16-be", "|"), ("utf-8", "|")]
)
def test_utf_16_and_bars_are_read(tmp_path: Path, encoding: str, delimiter: str) -> None:
    lines = ["banner,click,ville,", *["thé,0,Orléans,"] * 3, *["thé,1,Orléans,"] * 3]
    text = "\n".join(lines).replace(",", delimiter) + "\n"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / "log.csv").write_bytes((mark + text).encode(encoding))
    log = logs.read(tmp_path / "log.csv")
    assert log.arms == ("thé",)
    assert log.reward.tolist() == [0, 0, 0, 1, 1, 1]
    assert log.context["ville"].labels == ("Orléans",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"PK\x03\x04rest", "is a workbook or an archive; save its table as 'CSV UTF-8'"),
        (b"\x00\x01\x02\x03rest\n", "is not text"),
        (b'[{"arm": "a", "reward": 1}]', "is one JSON array; write an object on each line"),
        (b"2026-03-02,red,1\n2026-03-03,blue,0\n", "has no header"),
        (b"arm,reward,propensity\nred,1,20\n", "20 percent is 0.2 or '20%'"),
        (b"arm,Umsatz\nred,viel\n", "the reward is column 'Umsatz': correct it or name another"),
        (b"Time,arm,click\n10:20:33,red,1\n", "join it with the column of the day to one column"),
        (b"arm,click\n" + b"".join(b"v%d,1\n" % n for n in range(60)), "column 'arm', has 60 values"),
    ],
    ids=["workbook", "binary", "array", "no header", "percent", "words", "clock", "ids"],
)  # fmt: skip
def test_a_table_that_cannot_be_read_names_the_column_and_the_fix(
    tmp_path: Path, text: bytes, said: str
) -> None:
    (tmp_path / "log.csv").write_bytes(text)
    named = {"reward": "Umsatz"} if b"Umsatz" in text else {}
    with pytest.raises(DataError) as error:
        logs.read(tmp_path / "log.csv", **named)  # type: ignore[arg-type]
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("above", ["", "sep=;\n", "# a comment\n\n"])
def test_days_and_clocks_of_two_columns_are_joined(tmp_path: Path, above: str) -> None:
    rows = ["Data;Time;Banner;Comprou?", "02/03/2026;17:05;a;sim", "02/03/2026;;b;não", "x;y;z"]
    rows += [f"03/03/2026;9:{n % 60:02d};a;R$ 1.234,50" for n in range(120)]
    (tmp_path / "log.csv").write_text(above + "\n".join(rows))
    log = logs.read(tmp_path / "log.csv", arm="Banner", reward="Comprou?")
    assert log.time is not None
    assert log.time[0] == datetime(2026, 3, 2, 17, 5, tzinfo=UTC).timestamp()
    assert log.time[-1] == datetime(2026, 3, 3, 9, 59, tzinfo=UTC).timestamp()
    assert log.reward[:2].tolist() == [1, 1234.5]
    assert not log.context
    again = logs.read(tmp_path / "log.csv", arm="Banner", reward="Comprou?", context=[])
    assert again.time is not None
    assert np.array_equal(again.time, log.time)
    assert "column 'Time' has times of the day and is joined to 'Data'" in log.reading.notes
    first = above.count("\n") + 1
    assert [line for line, _ in log.reading.bad.first] == [first + 2, first + 3]


@pytest.mark.parametrize("kind", ["iso", "german", "parquet"])
def test_dates_without_a_zone_are_those_of_the_time_zone(tmp_path: Path, kind: str) -> None:
    moments = [datetime(2026, 3, 28, 17, 0), datetime(2026, 3, 29, 17, 0)]  # summer time begins
    if kind == "parquet":
        path = tmp_path / "log.parquet"
        parquet.write_table(pa.table({"at": moments, "arm": ["a", "b"], "reward": [0, 1]}), path)
    else:
        path = tmp_path / "log.csv"
        form = "%d.%m.%Y %H:%M" if kind == "german" else "%Y-%m-%d %H:%M:%S"
        rows = [f"{moment:{form}},{arm},1" for moment, arm in zip(moments, "ab", strict=True)]
        path.write_text("\n".join(["at,arm,reward", *rows]))
    berlin = ZoneInfo("Europe/Berlin")
    for zone, at in (("Europe/Berlin", berlin), ("UTC", UTC)):
        log = logs.read(path, timezone=zone)
        assert log.time is not None
        assert log.time.tolist() == [one.replace(tzinfo=at).timestamp() for one in moments]


def test_a_row_of_totals_does_not_change_the_unit_of_times(tmp_path: Path) -> None:
    rows = [f"{1_772_420_000_000 + 60_000 * n},{'ab'[n % 2]},1" for n in range(40)]
    (tmp_path / "log.csv").write_text("\n".join(["at,arm,reward", *rows, "Total,,40"]))
    log = logs.read(tmp_path / "log.csv")
    assert log.time is not None
    assert log.time[0] == 1_772_420_000
    assert log.reading.bad.count == 1


def test_a_number_that_rises_with_every_row_is_an_id(tmp_path: Path) -> None:
    table = shop(at=lambda n, _: moment(n).isoformat(), order=lambda n, _: 500 + 7 * n + n % 5)
    log = read(tmp_path, table)
    assert log.reading.roles["id"] == "order"
    assert not log.context


def test_day_numbers_of_a_spreadsheet_are_remarked_on(tmp_path: Path) -> None:
    log = read(tmp_path, shop(time=lambda n, _: f"{46_083 + n / 12:.4f}"))
    assert any("day numbers of a spreadsheet" in note for note in log.reading.notes)
