"""Logs: JSON lines, written by threads, and never waited for."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

from tidepull.service import logs
from tidepull.service.logs import JsonHandler, LineWriter


class Stuck(io.StringIO):
    """A stream that takes nothing until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def write(self, text: str) -> int:
        assert self.free.wait(20)
        return super().write(text)


def test_stream_that_hangs_is_not_waited_for_and_lines_beyond_a_bound_are_counted() -> None:
    stream = Stuck()
    writer = LineWriter(stream)
    started = time.monotonic()
    count = 3 * logs.MAX_BUFFERED  # a third may be under way, a third waits
    for n in range(count):
        writer.write(b"%d" % n)
    assert time.monotonic() - started < 10
    lost = writer.lost
    assert lost >= logs.MAX_BUFFERED
    stream.free.set()
    writer.flush(20)
    writer.close()
    written = stream.getvalue().split()
    assert len(written) == count - lost
    assert written == sorted(written, key=int)


def test_lines_are_gathered_and_none_is_left_behind() -> None:
    class Counted(io.StringIO):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            return super().write(text)

    stream = Counted()
    writer = LineWriter(stream)
    for n in range(200):
        writer.write(b"%d" % n)
        time.sleep(0.0002)
    deadline = time.monotonic() + 10
    while len(stream.getvalue().split()) < 200 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stream.getvalue().split() == [str(n) for n in range(200)]
    assert stream.writes < 20, "a thread was woken for every line"
    writer.close()


def test_error_is_one_line_with_its_traceback() -> None:
    stream = io.StringIO()
    handler = JsonHandler(stream)
    logger = logging.Logger("tidepull.serve")
    logger.addHandler(handler)
    try:
        raise ValueError("over\ntwo lines")
    except ValueError:
        logger.exception("request %s failed", "r1")
    handler.close()
    (line,) = stream.getvalue().splitlines()
    entry = json.loads(line)
    assert (entry["level"], entry["message"]) == ("error", "request r1 failed")
    assert "ValueError: over" in entry["traceback"]


def test_everything_that_a_service_says_is_json(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"nonsense" * 100)
    with (tmp_path / "said").open("w+") as said:
        words = ["-m", "tidepull", "serve", "--db", str(tmp_path), "--insecure", "--port", "0"]
        service = subprocess.Popen(
            [sys.executable, *words], stderr=said, env={**os.environ, "TIDEPULL_DRAIN": "0"}
        )
        try:
            deadline = time.monotonic() + 60
            while not (found := re.search(r"listening on (\S+);", (tmp_path / "said").read_text())):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            urllib.request.urlopen(f"{found[1]}/v1/agents", timeout=40).close()
        finally:
            service.send_signal(signal.SIGTERM)
            assert service.wait(40) == 0
    entries = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines()]
    assert all("at" in entry for entry in entries)
    assert [entry["path"] for entry in entries if "path" in entry] == ["/v1/agents"]
