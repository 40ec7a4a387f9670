"""The examples in docs/service.md are run as they stand: curl, JavaScript, Python and the
shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.service.running import Running, running

PAGE = Path(__file__).parents[3] / "docs" / "service.md"


def blocks(language: str) -> list[str]:
    examples = PAGE.read_text().partition("\n## Examples")[2].partition("\n## HTTP API")[0]
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", examples, re.DOTALL)
    assert found
    return found


def run(service: Running, words: list[str], text: str) -> str:
    shim = service.root / "tidepull"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tidepull "$@"\n')
    shim.chmod(0o755)
    env = {
        **os.environ,
        "TIDEPULL_URL": service.url,
        "TIDEPULL_TOKEN": service.token,
        "PATH": f"{service.root}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        words, input=text, env=env, text=True, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_examples_do_what_the_page_says(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        said = [run(service, ["bash", "-e"], text) for text in blocks("bash")]
        assert '"decisions":0' in said[0]
        assert '"propensity":' in said[1]
        assert said[2] == '{"id":"visit 17","duplicate":false}'
        assert "1 decision since" in said[3]
        assert "there is no field 'shoe'" in said[4]
        assert '"arm"' in said[5]
        assert "2 decisions since" in said[5]
        assert "3 decisions since" in run(service, [sys.executable, "-"], blocks("python")[0])
        if shutil.which("node") is None:
            pytest.skip("the JavaScript example was not run: there is no node here")
        assert run(service, ["node", "--input-type=module"], blocks("js")[0]).startswith(
            "7 decisions since"
        )
