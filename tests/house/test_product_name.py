"""The product has one name."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORMER_NAME = "hold" + "point"


def test_only_the_changelog_has_the_former_name() -> None:
    """In the text of a file or in its path, in any case."""
    grep = subprocess.run(
        ["git", "grep", "-lIi", FORMER_NAME, "--", ".", ":!CHANGELOG.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    paths = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (grep.returncode, grep.stdout) == (1, "")  # nothing matches
    assert FORMER_NAME not in paths.stdout.lower()
