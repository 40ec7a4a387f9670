"""Schemathesis against a running service, for longer than the tests have time.

python -m research.benchmarks.service_fuzz [--examples 300]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path


def main() -> None:
    from tests.integration.service.fuzzing import fuzzed
    from tests.integration.service.running import running

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--examples", type=int, default=300, help="requests of each kind for each operation"
    )
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder), personalizer="menu") as service,
    ):
        sent = fuzzed(service, given.examples)
    for operation, count in sent.items():
        print(f"{count:6} {operation}")
    print(f"{sum(sent.values()):6} requests: no 5xx, nothing that the description does not say")


if __name__ == "__main__":
    main()
