"""An agent that has just been made, as it lies on the disk or the shelf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tests.property.simulation.disk import Disk, File
from tests.property.simulation.ledger import Shelf
from tidepull.agent.records import RELEASE_KEY

TEXTS = ("settings", "salt", RELEASE_KEY)
"""All that a new agent writes besides records."""


@dataclass(frozen=True, slots=True)
class Image:
    """Files by name, and texts."""

    files: dict[str, bytes]
    texts: dict[str, str]

    @classmethod
    def of(cls, disk: Disk, shelf: Shelf) -> Self:
        """What is there now."""
        texts = {key: shelf.read(key) for key in TEXTS}
        return cls(
            {name: bytes(file.seen) for name, file in disk.names.items()},
            {key: text for key, text in texts.items() if text is not None},
        )

    def put_on(self, disk: Disk, shelf: Shelf) -> None:
        """All of it is there, and durable."""
        for name, data in self.files.items():
            disk.names[name] = File(bytearray(data), bytearray(data))
        disk.sync_names()
        shelf.write(self.texts)
