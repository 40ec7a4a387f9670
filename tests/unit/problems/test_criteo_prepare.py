"""From the published file to the prepared one: right, repeatable, without the label in the
features."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from tidepull.errors import DataError, ParameterError, StoreError
from tidepull.problems.criteo import dataset
from tidepull.problems.criteo.banners import load, save
from tidepull.problems.criteo.dataset import COLUMNS, FEATURES, Impressions
from tidepull.problems.criteo.prepare import (
    feature_rows,
    prepare_blocks,
    prepare_file,
    write_synthetic,
)

ROWS = 4000


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("criteo") / "file.tsv.gz"
    write_synthetic(path, rows=ROWS, seed=1)
    return path


@pytest.fixture(scope="module")
def rows() -> Impressions:
    blocks = list(feature_rows(ROWS, seed=1))
    return Impressions(
        *(np.concatenate([getattr(b, name) for b in blocks]) for name in ("categories", "clicked"))
    )


def tsv(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()))
    return path


def lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)


def test_file_and_memory_give_the_same(published: Path) -> None:
    from_file = prepare_file(published, dim=8, sample=1500, seed=2)
    from_memory = prepare_blocks(feature_rows(ROWS, seed=1), dim=8, sample=1500, seed=2)
    for name in ("clicked", "not_clicked", "theta"):
        assert getattr(from_file, name).tobytes() == getattr(from_memory, name).tobytes()


def test_preparing_twice_writes_the_same_bytes(published: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 2), ("b", 2), ("c", 3)):
        save(prepare_file(published, dim=8, sample=1500, seed=seed), tmp_path / name)
    first, again, other = ((tmp_path / name).read_bytes() for name in "abc")
    assert first == again != other


def test_small_blocks_change_nothing(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = prepare_file(published, dim=8, sample=1500)
    monkeypatch.setattr(dataset, "_BLOCK_BYTES", 10_000)
    assert prepare_file(published, dim=8, sample=1500).clicked.tobytes() == whole.clicked.tobytes()


def test_prepared_file_says_where_it_comes_from(published: Path) -> None:
    about = prepare_file(published, dim=8, sample=1500, seed=2).about
    assert about["source_sha256"] == hashlib.sha256(published.read_bytes()).hexdigest()
    assert about["source_bytes"] == published.stat().st_size
    assert (about["rows_seen"], about["rows_sampled"], about["dim"], about["seed"]) == (
        ROWS,
        1500,
        8,
        2,
    )
    assert about["synthetic"] is True
    assert {"tidepull", "numpy", "scipy"} <= about["versions"].keys()


def test_progress_ends_at_the_size_of_the_file(published: Path) -> None:
    heard: list[int] = []
    prepare_file(published, dim=8, sample=1500, on_bytes=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == published.stat().st_size


def test_features_are_the_same_when_labels_are_permuted(rows: Impressions) -> None:
    """All vectors of both pools together (none is left out here) do not depend on who clicked."""
    shuffled = Impressions(rows.categories, np.random.default_rng(0).permutation(rows.clicked))
    true, permuted = (prepare_blocks([r], dim=8, sample=ROWS) for r in (rows, shuffled))
    assert true.theta.tobytes() != permuted.theta.tobytes()
    assert not np.array_equal(true.clicked, permuted.clicked)
    for both in (true, permuted):
        assert len(both.clicked) + len(both.not_clicked) == ROWS
    vectors = [np.concatenate([p.clicked, p.not_clicked]) for p in (true, permuted)]
    first, second = (v[np.lexsort(v.T)] for v in vectors)
    np.testing.assert_array_equal(first, second)


def test_features_explain_nothing_when_labels_are_chance(rows: Impressions) -> None:
    """A leaked label would give an R^2 near 1; chance alone gives about dim / rows."""
    chance = Impressions(rows.categories, np.random.default_rng(1).random(ROWS) < 0.36)
    assert prepare_blocks([chance], dim=20, sample=ROWS).about["r_squared"] < 3 * 20 / ROWS
    assert 0.05 < prepare_blocks([rows], dim=20, sample=ROWS).about["r_squared"] < 0.5


def test_only_the_named_columns_matter(published: Path, tmp_path: Path) -> None:
    ignored = [name for name in COLUMNS if name not in (*FEATURES, "click")]
    header, *lines = lines_of(published)
    places = [COLUMNS.index(name) for name in ignored]
    altered = []
    for line in lines:
        cells = line.rstrip("\n").split("\t")
        for place in places:
            cells[place] = "17"
        altered.append("\t".join(cells) + "\n")
    other = prepare_file(tsv(tmp_path / "x", header + "".join(altered)), dim=8, sample=1500)
    same = prepare_file(published, dim=8, sample=1500)
    assert other.clicked.tobytes() == same.clicked.tobytes()
    assert other.theta.tobytes() == same.theta.tobytes()


def test_pools_are_cut_to_ten_thousand() -> None:
    prepared = prepare_blocks(feature_rows(30_000, seed=0), dim=3)
    assert prepared.clicked.shape == prepared.not_clicked.shape == (10_000, 3)
    assert prepared.clicked.dtype == np.float32


def test_real_campaigns_are_not_called_synthetic(rows: Impressions) -> None:
    published_ids = Impressions(rows.categories % 2**25, rows.clicked)
    assert prepare_blocks([published_ids], dim=8, sample=ROWS).synthetic is False
    assert prepare_blocks([rows], dim=8, sample=ROWS).synthetic is True


def test_saved_file_loads_as_it_was(rows: Impressions, tmp_path: Path) -> None:
    prepared = prepare_blocks([rows], dim=8, sample=ROWS)
    save(prepared, tmp_path / "deep" / "er" / "criteo.npz")
    loaded = load(tmp_path / "deep" / "er" / "criteo.npz")
    for name in ("clicked", "not_clicked", "theta"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(prepared, name))
    assert loaded.about == prepared.about


def test_damaged_file_is_refused_wherever_the_damage_is(rows: Impressions, tmp_path: Path) -> None:
    path = tmp_path / "criteo.npz"
    save(prepare_blocks([rows], dim=4, sample=500), path)
    whole = path.read_bytes()
    undamaged = load(path)
    refused = 0
    for place in np.linspace(0, len(whole) - 1, 60).astype(int):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        path.write_bytes(bytes(damaged))
        try:
            loaded = load(path)
        except DataError:
            refused += 1
        else:  # a byte of the archive that carries no content, such as a date
            assert loaded.clicked.tobytes() == undamaged.clicked.tobytes()
            assert loaded.theta.tobytes() == undamaged.theta.tobytes()
            assert loaded.about == undamaged.about
    assert refused > 50
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged"):
        load(path)


def test_altered_content_is_found_by_the_checksum(rows: Impressions, tmp_path: Path) -> None:
    path = tmp_path / "criteo.npz"
    save(prepare_blocks([rows], dim=4, sample=500), path)
    with np.load(path) as archive:
        members = {name: archive[name].copy() for name in archive.files}
    members["theta"][2] *= -1
    np.savez(path, allow_pickle=False, **members)
    with pytest.raises(DataError, match="checksum does not match"):
        load(path)


def test_saving_leaves_the_old_file_when_it_fails(
    rows: Impressions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "criteo.npz"
    path.write_bytes(b"old")

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(StoreError, match=r"cannot write .*criteo\.npz: the disk is full"):
        save(prepare_blocks([rows], dim=4, sample=500), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file .*nowhere\.tsv\.gz"):
        prepare_file(tmp_path / "nowhere.tsv.gz")
    with pytest.raises(DataError, match=r"there is no prepared Criteo file .*prepare-criteo"):
        load(tmp_path / "nowhere.npz")


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        prepare_file(tmp_path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_truncated_file_is_refused(published: Path, tmp_path: Path, share: float) -> None:
    whole = published.read_bytes()
    (tmp_path / "cut.tsv.gz").write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(DataError, match="truncated or damaged"):
        prepare_file(tmp_path / "cut.tsv.gz")


def test_damaged_source_is_refused(published: Path, tmp_path: Path) -> None:
    damaged = bytearray(published.read_bytes())
    damaged[-6] ^= 1  # the stored checksum of the text
    (tmp_path / "bad.tsv.gz").write_bytes(bytes(damaged))
    with pytest.raises(DataError, match="truncated or damaged"):
        prepare_file(tmp_path / "bad.tsv.gz")


def test_wrong_kinds_of_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04rest")
    with pytest.raises(DataError, match="zip archive; unpack it"):
        prepare_file(tmp_path / "a.zip")
    (tmp_path / "a.tsv").write_text("\t".join(COLUMNS))
    with pytest.raises(DataError, match="not gzip-compressed"):
        prepare_file(tmp_path / "a.tsv")


def test_wrong_header_is_named(published: Path, tmp_path: Path) -> None:
    header, *lines = lines_of(published)
    path = tsv(tmp_path / "x", header.replace("cat3", "category3") + "".join(lines))
    with pytest.raises(
        DataError, match="another header; its tab-separated columns must include campaign"
    ):
        prepare_file(path)
    with pytest.raises(DataError, match="another header"):
        prepare_file(tsv(path, header.replace("\t", ",")))


@pytest.mark.parametrize(
    ("value", "message"), [("2", "other than 0 and 1"), ("", "empty value"), ("x", "int64")]
)
def test_wrong_click_is_named(published: Path, tmp_path: Path, value: str, message: str) -> None:
    header, line, *lines = lines_of(published)
    cells = line.split("\t")
    cells[COLUMNS.index("click")] = value
    with pytest.raises(DataError, match=message):
        prepare_file(tsv(tmp_path / "x", header + "\t".join(cells) + "".join(lines)))


def test_too_few_clicks_are_counted(published: Path, tmp_path: Path) -> None:
    header, *lines = lines_of(published)
    click = COLUMNS.index("click")
    quiet = "".join(line for line in lines if line.split("\t")[click] == "0")
    with pytest.raises(DataError, match=r"only 0 of the .* sampled rows are clicked, at least 100"):
        prepare_file(tsv(tmp_path / "x", header + quiet))
    with pytest.raises(DataError, match="only 0 of the 0 sampled rows"):
        prepare_file(tsv(tmp_path / "x", header))


def test_wrong_numbers_are_refused(published: Path) -> None:
    with pytest.raises(ParameterError, match="dim must be at least 1"):
        prepare_file(published, dim=0)
    with pytest.raises(ParameterError, match="sample must be more than dim"):
        prepare_file(published, dim=50, sample=50)
