"""What a user types, run in this process: the same words, output and exit code as a real one,
without its start."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tidepull.cli import main


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def tidepull(*words: str, cwd: Path | None = None, **environment: str) -> Done:
    """Run `tidepull WORDS...`; what is not caught by the command line's own net is raised here
    too."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        mock.patch.object(sys, "argv", ["tidepull", *words]),
        mock.patch.dict(os.environ, environment),
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    assert isinstance(code, int), code
    return Done(code, out.getvalue(), err.getvalue())
