"""A copy of the project in which one guard is missing, and the tests that run there."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests import build_cache
from tests.guards import PROOF_LINES, ROOT
from tests.mutants.guards import Guard
from tests.mutants.markers import Misplaced, statement

LEFT_BEHIND = shutil.ignore_patterns(
    ".git", ".venv", "var", "__pycache__", ".*_cache", "docs"
)
UNFINISHED = shutil.ignore_patterns("*-draft", "*.lock")
# Not this run's: the copy's tests have servers and numbers of their own.
NOT_HANDED_ON = ("PROVE", PROOF_LINES, "DATABASE_URL", "REDIS_URL", "STATE", "CI")
LONGEST_S = 1800


def copy(folder: Path) -> Path:
    """A copy of the project, with what the tests build once from its sources."""
    root = Path(shutil.copytree(ROOT, folder / "copy", ignore=LEFT_BEHIND))
    if build_cache.FOLDER.exists():
        kept = root / build_cache.FOLDER.relative_to(ROOT)
        shutil.copytree(build_cache.FOLDER, kept, ignore=UNFINISHED)
    return root


def remove(guard: Guard, root: Path) -> None:
    file = root / guard.file
    file.write_text(without(guard, file.read_text()))


def without(guard: Guard, text: str) -> str:
    """This text of the guard's file, without the guard. Raises Misplaced, which names
    the guard, its file and what is wrong."""
    tree = ast.parse(text)
    before = ast.unparse(tree)
    try:
        guard.removal.change(statement(text, tree, guard.function, guard.marker))
    except Misplaced as wrong:
        raise Misplaced(f"{guard} ({guard.file}): {wrong}") from None
    after = ast.unparse(tree)
    if after == before:
        raise Misplaced(f"{guard} ({guard.file}): its removal changes nothing")
    return after


def run(tests: Sequence[str], root: Path) -> subprocess.CompletedProcess[str]:
    """These tests of the copy, up to the first failure."""
    command = ["-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        [sys.executable, *command],
        cwd=root,
        env=_environ(),
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
    )


def summary(done: subprocess.CompletedProcess[str]) -> str:
    """pytest's last line: "1 failed, 3 passed in 2.1s". An error is none of these: the
    copy did not get as far as its tests."""
    lines = done.stdout.strip().splitlines()
    return lines[-1] if lines else f"error: {done.stderr[-500:]}"


def _environ() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in NOT_HANDED_ON}
    filled = kept.pop("COUNTERSEAL_TEST_FILLED", "").split()
    mine = {k: v for k, v in kept.items() if k not in filled}
    return {k: v for k, v in mine.items() if not k.startswith("PYTEST_")} | {
        "MODEL_SEARCHES": "1"
    }
