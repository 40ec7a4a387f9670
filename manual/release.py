"""Build a release into `dist/`: `python -m manual.release` (RELEASING.md has all steps).

The files are built twice from what is committed, in two folders, and must be equal byte for byte. Beside the
wheel and the source distribution there are a bill of materials (CycloneDX) and SHA-256 checksums.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
EXTRA = "all"
"""The extra whose packages the bill of materials lists."""


def build(folder: Path, *, source: Path = ROOT, revision: str = "HEAD") -> tuple[Path, Path]:
    """The wheel and the source distribution of a commit.

    The wheel is made of what the source distribution has, as an installer would make it.

    Parameters
    ----------
    folder : Path
        Where the two files go; sources are unpacked there too.
    source : Path
        The repository.
    revision : str
        The commit. Its time is the time of every file in the archives.
    """
    folder.mkdir(parents=True, exist_ok=True)
    packed = _git(source, "archive", revision)
    epoch = _git(source, "log", "-1", "--format=%ct", revision).decode().strip()
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder / "source", filter="data")
    _hatchling(folder / "source", folder, "sdist", epoch)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    _hatchling(folder / sdist.name.removesuffix(".tar.gz"), folder, "wheel", epoch)
    (wheel,) = folder.glob("*.whl")
    return wheel, sdist


def _git(source: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=source, check=True, capture_output=True).stdout


def _hatchling(source: Path, folder: Path, target: str, epoch: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    subprocess.run(command, cwd=source, env=env, check=True, capture_output=True, timeout=120)


def materials(wheel: Path, extra: str = EXTRA) -> dict[str, Any]:
    """The bill of materials: every package that an extra brings, as CycloneDX 1.6.

    Versions and licences are those of the packages that are installed here, which are what the
    release is tested with (`constraints.txt`).

    Parameters
    ----------
    wheel : Path
        The wheel of tidepull, which names what it needs.
    extra : str
        The extra; packages that the plain installation needs are `required`, others `optional`.
    """
    name, version = wheel.name.split("-")[:2]
    own = PathDistribution(zipfile.Path(wheel, f"{name}-{version}.dist-info/"))
    plain, whole = _needed(own, set()), _needed(own, {extra})
    components = [
        {
            "type": "library",
            "bom-ref": _purl(one),
            "name": one,
            "version": distribution(one).version,
            "scope": "required" if one in plain else "optional",
            "purl": _purl(one),
            **_licence(one),
        }
        for one in sorted(whole.keys() - {name})
    ]
    root = f"pkg:pypi/{name}@{version}"
    graph = [
        {
            "ref": root if one == name else _purl(one),
            "dependsOn": sorted(_purl(other) for other in needs),
        }
        for one, needs in sorted(whole.items())
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, json.dumps([root, components]))}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": root,
                "name": name,
                "version": version,
                "purl": root,
                "licenses": [{"license": {"id": "MIT"}}],
            }
        },
        "components": components,
        "dependencies": graph,
    }


def _needed(own: Distribution, extras: set[str]) -> dict[str, set[str]]:
    """Packages that a package needs, directly and through others, each with what it needs."""
    found: dict[str, set[str]] = {}
    seen = set[tuple[str, str]]()
    waiting = [(own.name, extra) for extra in ("", *sorted(extras))]
    while waiting:
        one, extra = waiting.pop()
        if (one, extra) in seen:
            continue
        seen.add((one, extra))
        needs = found.setdefault(one, set())
        for line in (own if one == own.name else distribution(one)).requires or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                other = str(canonicalize_name(requirement.name))
                needs |= {other} - {one}
                waiting += [(other, inner) for inner in ("", *sorted(requirement.extras))]
    return found


def _purl(name: str) -> str:
    return f"pkg:pypi/{name}@{distribution(name).version}"


def _licence(name: str) -> dict[str, Any]:
    data = distribution(name).metadata.json
    if expression := data.get("license_expression"):
        return {"licenses": [{"expression": expression}]}
    named = [one for one in data.get("classifier", []) if one.startswith("License :: OSI")]
    text = named[0].rpartition(" :: ")[2] if named else str(data.get("license") or "")
    return {"licenses": [{"license": {"name": text}}]} if 0 < len(text) < 80 else {}


def release(target: Path, *, source: Path = ROOT, revision: str = "HEAD") -> list[Path]:
    """Build twice, compare, and put everything into a folder.

    Parameters
    ----------
    target : Path
        The folder, which is made.
    source, revision
        As for `build`.
    """
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        files = build(Path(first), source=source, revision=revision)
        again = build(Path(second), source=source, revision=revision)
        for one, other in zip(files, again, strict=True):
            if one.read_bytes() != other.read_bytes():
                raise SystemExit(f"{one.name} differs between two builds of the same commit")
        target.mkdir(parents=True, exist_ok=True)
        kept = [target / file.name for file in files]
        for file, copy in zip(files, kept, strict=True):
            copy.write_bytes(file.read_bytes())
    bill = target / (kept[1].name.removesuffix(".tar.gz") + ".cdx.json")
    bill.write_text(json.dumps(materials(kept[0]), indent=1) + "\n", encoding="utf-8")
    sums = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in (*kept, bill)
    ]
    (target / "SHA256SUMS").write_text("\n".join(sums) + "\n", encoding="utf-8")
    return [*kept, bill, target / "SHA256SUMS"]


def main() -> None:
    """Release what is committed, and print sizes and checksums."""
    if _git(ROOT, "status", "--porcelain", "--untracked-files=no"):
        raise SystemExit("commit first: a release has what is committed, and files here differ")
    for file in release(ROOT / "dist"):
        print(f"{file.stat().st_size:>10,}  dist/{file.name}")
    print((ROOT / "dist" / "SHA256SUMS").read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
