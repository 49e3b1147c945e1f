"""The releases of Python that the product is for: each must find a wheel of every
package that requirements.lock names, since a host has no compiler."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)$")
OLDEST_LINUX = "x86_64-manylinux_2_28"


def list_versions(project: Path) -> list[str]:
    """The releases that a pyproject.toml names in its classifiers."""
    described = tomllib.loads(project.read_text())["project"]
    matches = map(CLASSIFIER.match, described["classifiers"])
    return [match[1] for match in matches if match]


def find_missing_wheels(version: str, lock: Path) -> str:
    """What uv says of the packages that have no wheel for a release of Python; empty
    when each has one. Nothing is installed."""
    command = [sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--quiet"]
    command += ["--python-version", version, "--python-platform", OLDEST_LINUX]
    command += ["--only-binary", ":all:", "--requirement", str(lock)]
    with tempfile.TemporaryDirectory() as folder:
        command += ["--target", folder]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""
