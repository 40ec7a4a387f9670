from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tidepull._internal.files import abandoned, replacing, temporary_name, write_whole
from tidepull.errors import StoreError


def test_what_a_dead_process_left_is_found_on_machines_with_dots_in_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node1.lab.example")
    mine = temporary_name(tmp_path / "suite.v2.parquet")
    dead = mine.with_name(mine.name.replace(f"@{os.getpid()}", "@4194399"))
    for path in (mine, dead):
        path.write_bytes(b"half")
    assert abandoned(tmp_path) == [dead]


def test_a_real_write_limit_is_one_sentence(tmp_path: Path) -> None:
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from tidepull._internal.files import write_whole\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"write_whole(Path({str(tmp_path)!r}) / 'x', b'x' * 5000)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment
    )
    assert "the file would exceed the size limit" in done.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    write_whole(path, b"old")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


def test_a_handle_replaces_the_file_only_once_its_content_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x"
    with replacing(path) as handle:
        handle.write(b"first")
        assert not path.exists()

    def fail_half_way() -> None:
        with replacing(path) as handle:
            handle.write(b"second")
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        fail_half_way()
    assert path.read_bytes() == b"first"
    assert [file.name for file in path.parent.iterdir()] == ["x"]


def test_what_the_disk_refuses_is_one_sentence_wherever_it_happens(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match=r"cannot write .*x: the disk is full"),
        replacing(tmp_path / "x"),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []
