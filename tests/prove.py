"""`make prove`: every test marked `proof` at its full number, one after the other, and
what they measured as docs/proof.md.

Arguments go to pytest, so that one test can be proved again: the lines of the others
stay as they were, each with the commit it was measured at.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from tests.guards import PROOF_LINES, ROOT

PAGE = ROOT / "docs" / "proof.md"
LINE = re.compile(r"^- \*\*(?P<id>[^*]+)\*\* (?P<text>.*)$", re.M)
HEAD = """\
# Proof

What the tests of the design's proof list measured at their full number. `make prove`
writes this page; `make test` runs the same tests at a small number. No failure in n
trials means at most 3/n failures at 95 % confidence.

{machine}

"""


def main(args: list[str]) -> int:
    """pytest's exit code; the page is written only when everything held."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.touch()
        code = _run(args, lines)
        if code == 0:
            _write(_measured(lines))
    return code


def add(lines: Path) -> None:
    """What another command measured, beside what stands there."""
    _write(_measured(lines))


def _run(args: list[str], lines: Path) -> int:
    command = ["-m", "pytest", "-m", "proof", "-n", "0", "--timeout", "0", *args]
    environ = {**os.environ, "PROVE": "1", PROOF_LINES: str(lines)}
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=environ).returncode


def _measured(lines: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    stamp = f"({datetime.now(UTC).date()}, {_commit()})"
    for text in lines.read_text().splitlines():
        entry = json.loads(text)
        found[entry["id"]].append(f"{entry['line']} {stamp}")
    return found


def _write(measured: dict[str, list[str]]) -> None:
    known: dict[str, list[str]] = defaultdict(list)
    if PAGE.exists():
        for match in LINE.finditer(PAGE.read_text()):
            known[match["id"]].append(match["text"])
    known.update(measured)
    page = HEAD.format(machine=_machine())
    for name in sorted(known, key=_by_number):
        page += "".join(f"- **{name}** {text}\n" for text in known[name])
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page)


def _by_number(name: str) -> tuple[str, int, str]:
    """T2 before T10."""
    letters, number, rest = re.match(r"(\D*)(\d*)(.*)", name).groups()  # type: ignore[union-attr]
    return letters, int(number or 0), rest


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "no commit"


def _machine() -> str:
    return (
        f"Last run: {os.cpu_count()} CPUs, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
