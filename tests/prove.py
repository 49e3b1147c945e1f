"""`make prove`: every test marked `proof` at its full number, one after the other, and
what they measured as docs/proof.md.

Arguments go to pytest, so that one test can be proved again: the lines of the others
stay as they were, each with the commit it was measured at and, unseen on the page, the
test that measured it.
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
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from tests.guards import PROOF_LINES, ROOT

PAGE = ROOT / "docs" / "proof.md"
LINE = re.compile(r"^- \*\*(?P<id>[^*]+)\*\* (?P<text>.*) <!-- (?P<by>.*) -->$", re.M)
# What each test said under each name of the proof list.
Lines = dict[tuple[str, str], list[str]]
HEAD = """\
# Proof

What the tests of the design's proof list measured at their full number. `make prove`
writes this page; `make test` runs the same tests at a small number. No failure in n
trials means at most 3/n failures at 95 % confidence.

{machine}

"""


def main(args: list[str]) -> int:
    """pytest's exit code; the page is written only when everything held."""
    of = version()
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.touch()
        code = _run(args, lines)
        return add(lines, of, whole=not args) if code == 0 else code


def add(lines: Path, of: str, *, whole: bool = False) -> int:
    """What a command measured of the `version` that it began with, beside what others
    did before, or the `whole` of what tests measure; 1 when the checkout is another by
    now: then nobody knows what was measured, for processes start during a run."""
    if version() != of:
        sys.stderr.write(f"Not written: {of} became {version()} meanwhile.\n")
        return 1
    _write(_measured(lines, of), whole=whole)
    return 0


def keep(by: str, said: Iterable[tuple[str, str]], of: str) -> int:
    """`add` for a command that is no test: what it said, each under a name."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lines"
        entries = [{"id": name, "by": by, "line": line} for name, line in said]
        file.write_text("".join(json.dumps(one) + "\n" for one in entries))
        return add(file, of)


def version() -> str:
    """The commit, and whether there is more in the checkout than that."""
    commit = _git("rev-parse", "--short", "HEAD") or "no commit"
    changes = _git("status", "--porcelain", "--", ".", f":!{PAGE.relative_to(ROOT)}")
    return f"{commit} with changes" if changes else commit


def _git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def _run(args: list[str], lines: Path) -> int:
    command = ["-m", "pytest", "-m", "proof", "-n", "0", "--timeout", "0", *args]
    environ = {**os.environ, "PROVE": "1", PROOF_LINES: str(lines)}
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=environ).returncode


def _measured(lines: Path, of: str) -> Lines:
    found: Lines = defaultdict(list)
    stamp = f"({datetime.now(UTC).date()}, {of})"
    for text in lines.read_text().splitlines():
        entry = json.loads(text)
        found[entry["id"], entry["by"]].append(f"{entry['line']} {stamp}")
    return found


def _write(measured: Lines, *, whole: bool) -> None:
    again = {by for _, by in measured}
    known = _known(lambda by: by not in again and not (whole and "::" in by))
    known |= measured
    page = HEAD.format(machine=_machine())
    for name, by in sorted(known, key=_by_number):
        page += "".join(
            f"- **{name}** {said} <!-- {by} -->\n" for said in known[name, by]
        )
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page)


def _known(stays: Callable[[str], bool]) -> Lines:
    """What stands on the page, but for what no test measures any more."""
    found: Lines = defaultdict(list)
    if PAGE.exists():
        for match in LINE.finditer(PAGE.read_text()):
            if _is_there(match["by"]) and stays(match["by"]):
                found[match["id"], match["by"]].append(match["text"])
    return found


def _is_there(by: str) -> bool:
    """A command, or a test that has this name still."""
    path, *classes = by.partition("[")[0].split("::")
    if not classes:
        return True
    file = ROOT / path
    return file.exists() and f"def {classes[-1]}(" in file.read_text()


def _by_number(line: tuple[str, str]) -> tuple[str, int, str, str]:
    """T2 before T10."""
    name, by = line
    letters, number, rest = re.match(r"(\D*)(\d*)(.*)", name).groups()  # type: ignore[union-attr]
    return letters, int(number or 0), rest, by


def _machine() -> str:
    return (
        f"Last run: {os.cpu_count()} CPUs, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
