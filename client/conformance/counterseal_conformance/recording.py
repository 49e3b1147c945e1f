"""Record the interrupts of a framework as JSON, for tests that run without it.

    python -m counterseal_conformance.recording VARIANT --target FILE

Two calls wait: the second has arguments that do not fit the tool.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from .scripting import NOTE, build_turn
from .servers import start_server
from .subject import Subject, Target
from .variants import VARIANTS

MISFIT = ("call_2", "order_parts", {"part": "gear", "count": "many", "due": "soon"})


def record_interrupts(variant: str, target: Target) -> dict[str, Any]:
    """The values of the interrupts with which a run suspends, and the release."""
    framework = VARIANTS[variant].framework
    with (
        tempfile.TemporaryDirectory() as folder,
        start_server(framework, Path(folder)) as server,
    ):
        subject = Subject(
            target, variant, gated=True, folder=Path(folder), server=server
        )
        report = subject.start([[*NOTE[0], *build_turn(MISFIT)]])
    return {
        "variant": variant,
        "release": VARIANTS[variant].read_release(),
        "values": report.values,
    }


def main() -> None:
    parser = argparse.ArgumentParser("python -m counterseal_conformance.recording")
    parser.add_argument("variant", choices=VARIANTS)
    parser.add_argument("--target", type=Path, required=True)
    given = parser.parse_args()
    recorded = record_interrupts(given.variant, Target.load(given.target))
    sys.stdout.write(json.dumps(recorded, indent=2) + "\n")


if __name__ == "__main__":
    main()
