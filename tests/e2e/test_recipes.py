"""Every recipe of the manual is executed as it stands on its page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

import tidepull
from tests.integration.service.running import Running, running

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "recipes"
TESTED = {"django", "docker", "fastapi", "workers"}


def blocks(name: str, kind: str = "python", part: str = "") -> list[str]:
    """Code of a recipe, or of one section of a page."""
    text = (RECIPES / f"{name}.md").read_text()
    if part:
        text = text.partition(f"\n## {part}\n")[2].partition("\n## ")[0]
        assert text, part
    return re.findall(rf"```{kind}\n(.*?)```", text, re.S)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A decision service with the agent `shop`, with a policy that needs no compiled kernel."""
    with running(tmp_path_factory.mktemp("service")) as found:
        with tidepull.Client(found.url, token=found.token) as client:
            client.create("shop", arms=["blue", "green"], context={}, policy="bernoulli-ts")
        yield found


def environment(service: Running, folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(folder), str(ROOT / "src")])
    given = {"TIDEPULL_URL": service.url, "TIDEPULL_TOKEN": service.token, "PYTHONPATH": path}
    return {**os.environ, **given}


def decisions(service: Running) -> int:
    with tidepull.Client(service.url, token=service.token) as client:
        return int(client.agent("shop").state()["decisions"])


def test_every_recipe_is_tested_and_fits_a_screen() -> None:
    pages = {page.stem: page.read_text() for page in RECIPES.glob("*.md")}
    assert set(pages) == TESTED
    assert {
        name: len(text.splitlines()) for name, text in pages.items() if text.count("\n") > 60
    } == {}


@contextmanager
def serving(folder: Path, arguments: list[str], env: dict[str, str]) -> Iterator[str]:
    """A web server of a framework in a process of its own; its address."""
    path = folder / "log"
    with path.open("w") as log:
        command = [sys.executable, "-m", *arguments]
        server = subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log)
        try:
            end, found = time.monotonic() + 60, None
            while found is None and time.monotonic() < end and server.poll() is None:
                time.sleep(0.05)
                found = re.search(
                    r"(?:Listening at|running on):? (http://[\d.]+:\d+)", path.read_text()
                )
            assert found is not None, path.read_text()
            yield found[1]
        finally:
            server.terminate()
            server.wait(30)


def asked(url: str, body: bytes | None = None) -> dict[str, Any]:
    end = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, body, timeout=20) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError:
            raise
        except OSError:  # no worker takes requests yet, or the one that did was killed
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def test_fastapi_recipe_decides_and_continues_after_a_restart(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    (code,) = blocks("fastapi")
    quick = code.replace('"shop.db", ', '"shop.db", policy="bernoulli-ts", ')
    assert quick != code
    (tmp_path / "shop.py").write_text(quick)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    uvicorn = ["uvicorn", "--port", "0", "shop:app"]
    with serving(tmp_path, uvicorn, env) as url:
        answer = asked(f"{url}/banner?device=phone")
        assert answer["banner"] in ("blue", "green")
        assert asked(f"{url}/click/{answer['decision']}", b"") == {"new": True}
    with serving(tmp_path, uvicorn, env) as url:
        assert asked(f"{url}/click/{answer['decision']}", b"") == {"new": False}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            asked(f"{url}/click/7-00000000", b"")
    with tidepull.Agent(tmp_path / "shop.db", read_only=True) as agent:
        assert [row["id"] for row in agent.history("rows")] == [answer["decision"]]


def test_jupyter_recipe_runs_when_every_cell_is_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook: dict[str, Any] = {}
    for n, cell in enumerate(blocks("../agent", part="Jupyter notebooks")):
        for _ in range(2):
            exec(compile(cell, f"cell {n}", "exec"), notebook)
    notebook["agent"].close()
    assert len(notebook["rows"]) == 2
    assert capsys.readouterr().out.count("2 ") >= 2


def test_django_recipe_serves_a_banner_and_counts_a_click_once(
    service: Running, tmp_path: Path
) -> None:
    pytest.importorskip("django")
    settings, views = blocks("django")
    settings += (
        'SECRET_KEY = "tests only"\nROOT_URLCONF = "views"\nALLOWED_HOSTS = ["testserver"]\n'
        'INSTALLED_APPS = ["django.contrib.sessions"]\n'
        'MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware"]\n'
        'SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"\n'
    )
    (tmp_path / "settings.py").write_text(settings)
    (tmp_path / "views.py").write_text(views)
    visit = (
        "import django; django.setup()\n"
        "from django.test import Client\n"
        "client = Client()\n"
        "print(client.get('/banner').json()['banner'])\n"
        "print([client.post('/click').json()['new'] for _ in range(2)], client.get('/click').status_code)\n"
    )
    before = decisions(service)
    ran = subprocess.run(
        [sys.executable, "-c", visit],
        env=environment(service, tmp_path) | {"DJANGO_SETTINGS_MODULE": "settings"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(r"(blue|green)\n\[True, False\] 405\n", ran.stdout)
    assert decisions(service) == before + 1


def test_workers_recipe_decides_in_two_processes_and_survives_a_killed_one(
    service: Running, tmp_path: Path
) -> None:
    pytest.importorskip("gunicorn")
    (code,) = blocks("workers")
    (tmp_path / "shop.py").write_text(code)
    gunicorn = ["gunicorn", "--workers", "2", "--bind", "127.0.0.1:0", "shop:app"]
    with serving(tmp_path, gunicorn, environment(service, tmp_path)) as url:
        before, workers, ids = decisions(service), set[int](), list[str]()
        while len(workers) < 2 and len(ids) < 200:
            answer = asked(url)
            workers.add(answer["worker"])
            ids.append(answer["decision"])
        assert len(workers) == 2
        assert decisions(service) == before + len(ids)
        os.kill(min(workers), 9)
        assert asked(f"{url}/{ids[0]}", b"") == {"new": True}
        assert asked(f"{url}/{ids[0]}", b"") == {"new": False}


def test_docker_recipe_has_the_commands_of_the_dockerfile() -> None:
    """What the image does with them: tests/integration/service/test_packaging.py."""
    lines = [line for block in blocks("docker", "")[:2] for line in block.splitlines()]
    dockerfile = (ROOT / "Dockerfile").read_text()
    run = [line for line in lines if line.startswith("docker ")]
    assert len(run) == 3
    for line in run:
        assert line in dockerfile.replace(" && ", "\n"), line


def test_compose_recipe_has_the_commands_ports_and_services_of_the_file() -> None:
    """What the services do with it: tests/integration/service/test_packaging.py."""
    text = (ROOT / "examples" / "deploy" / "compose.yaml").read_text()
    (commands,) = blocks("docker", "", "Compose with PostgreSQL")
    for line in commands.splitlines()[1:]:
        assert f"#   {line}\n" in text, line
    services = yaml.safe_load(text)["services"]
    ports = {services[name]["ports"][0].split(":")[1] for name in ("one", "two")}
    assert ports == set(re.findall(r'"http://127.0.0.1:(\d+)"', blocks("docker")[0]))
