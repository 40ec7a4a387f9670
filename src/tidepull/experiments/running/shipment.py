"""What a machine of a cluster needs besides tidepull: your own module files, and the problems' data files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from tidepull._internal.files import write_whole
from tidepull.experiments.suites.spec import TrialSpec


@dataclass(frozen=True, slots=True)
class Shipment:
    """Files by name: data, and modules under the paths by which specs call them."""

    data: Mapping[str, bytes] = field(default_factory=dict)
    modules: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Names the folder into which it is unpacked."""
        total = sha256()
        for name, content in (*sorted(self.data.items()), *sorted(self.modules.items())):
            total.update(f"{name} {len(content)} ".encode() + content)
        return total.hexdigest()[:24]


def pack(modules: Iterable[str], data: Iterable[Path]) -> Shipment:
    """Read what is to travel; modules named by dots must be importable over there."""
    return Shipment(
        data={path.name: path.read_bytes() for path in data},
        modules={name: Path(name).read_bytes() for name in modules if name.endswith(".py")},
    )


def unpack(shipment: Shipment) -> dict[str, str]:
    """Put the files into a folder of this machine, point tidepull to them; returns the modules' new paths."""
    folder = Path(tempfile.gettempdir()) / f"tidepull-{os.getuid()}" / shipment.digest
    moved = {}
    for number, (name, content) in enumerate(sorted(shipment.modules.items())):
        path = folder / "modules" / str(number) / Path(name).name
        _put(path, content)
        moved[name] = str(path)
    for name, content in shipment.data.items():
        _put(folder / "tidepull" / name, content)
    if shipment.data:
        # Both places where problems look for data, so that no file of this machine is taken for the sent one.
        os.environ["TIDEPULL_DATA"] = str(folder / "tidepull")
        os.environ["XDG_CACHE_HOME"] = str(folder)
    return moved


def relocated(spec: TrialSpec, moved: Mapping[str, str]) -> TrialSpec:
    """The spec with its module files where they were unpacked."""
    return replace(spec, modules=tuple(moved.get(name, name) for name in spec.modules))


def _put(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        write_whole(path, content)
