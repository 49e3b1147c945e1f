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
# What each test said under each number.
Lines = dict[tuple[str, str], list[str]]
# What each number stands for. A number that is missing is that of no test.
PROOFS = {
    "T1": "the gate and a model of it never differ; a removed guard is noticed",
    "T2": "of many simultaneous decisions on a request, one wins",
    "T3": "simultaneous votes of one quorum are all counted",
    "T4": "a process killed anywhere neither doubles nor loses anything",
    "T5": "the broker loses, repeats, reorders, delays and forges messages",
    "T6": "a long run under faults, and what a long history costs",
    "T7": "a worker or an agent sleeps past its lease",
    "T8": "clocks are wrong, and transactions are long",
    "T9": "a release replaces its predecessor under load",
    "T13": "whatever is no strict JSON is refused",
    "T14": "naughty strings stand in every field that an agent fills",
    "T15": "an agent lies about its action",
    "T16": "something changes between page and decision, or decision and effect",
    "T17": "every caller calls every route with every method",
    "T18": "reads and forged writes change nothing",
    "T19": "only checked addresses are connected to",
    "T20": "webhooks behave as Standard Webhooks asks",
    "T21": "a flood of calls delays only its own caller",
    "T22": "one idempotency key is one proposal",
    "T23": "the time from a stop to the last effect",
    "T24": "whatever the gate stands on breaks",
    "T25": "a backup is restored",
    "T26": "a host, the broker or the primary of the database fails under load",
    "T27": "the first run of a new installation",
    "T28": "the time from a deactivation or revocation to the last refusal",
}
HEAD = """\
# Proof

What the proofs measured at their full number. `make prove` writes this page; `make
test` runs the same tests at a small number. No failure in n trials means at most 3/n
failures at 95 % confidence. [invariants.md](invariants.md) says what must hold and
which tests show it. `make bench` measures the goals, G1 to G12.

| proof | what it tries |
| --- | --- |
{proofs}

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
    proofs = "\n".join(f"| {number} | {what} |" for number, what in PROOFS.items())
    page = HEAD.format(machine=_machine(), proofs=proofs)
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
    """T2 before T13."""
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
