"""`make dist`: builds every distribution into dist/, twice, and compares both. Then it
installs each wheel in an empty environment and tries it there, writes what it consists
of as a CycloneDX SBOM, and the hashes of all files."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .distributions import (
    DISTRIBUTIONS,
    NPM_PACKAGE,
    ROOT,
    Distribution,
    NpmPackage,
)
from .environments import Environment
from .python_versions import find_missing_wheels, list_versions

DIST = ROOT / "dist"


class BuildFailed(Exception):
    """A distribution that is not as it must be. The text says which and why."""


def main(names: Sequence[str]) -> None:
    """Build and check the named distributions, or all."""
    chosen = [each for each in DISTRIBUTIONS if not names or each.name in names]
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    # The time of the commit: the same sources give the same bytes at any hour.
    os.environ["SOURCE_DATE_EPOCH"] = read_commit_time()
    check_wheels()
    for distribution in DISTRIBUTIONS:
        build_twice(distribution)
    if not names or NPM_PACKAGE.name in names:
        NPM_PACKAGE.check(build_twice(NPM_PACKAGE))
    for distribution in chosen:
        check_distribution(distribution)
    write_hashes()


def check_wheels() -> None:
    """Raises BuildFailed for a release of Python that lacks a wheel of a package."""
    versions = list_versions(ROOT / "pyproject.toml")
    for version in versions:
        if missing := find_missing_wheels(version, ROOT / "requirements.lock"):
            raise BuildFailed(f"Python {version}: {missing}")
    report(f"every package has wheels for Python {', '.join(versions)}")


def read_commit_time() -> str:
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def build_twice(distribution: Distribution | NpmPackage) -> Path:
    """Build into dist/, and once more elsewhere. Raises BuildFailed when the bytes
    differ."""
    file = distribution.build(DIST)
    with tempfile.TemporaryDirectory() as folder:
        again = distribution.build(Path(folder))
        if hash_file(again) != hash_file(file):
            raise BuildFailed(f"{file.name}: two builds of the same sources differ")
    report(f"built {file.name}, {file.stat().st_size // 1000} kB, twice the same")
    return file


def check_distribution(distribution: Distribution) -> None:
    """Install the wheel in an empty environment, try it, and write its SBOM."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder))
        environment.install([distribution.requirement], wheels=DIST)
        for check in distribution.checks:
            check(environment)
        sbom = DIST / f"{distribution.name}.cdx.json"
        environment.write_sbom(sbom)
    report(f"checked {distribution.name}, and wrote {sbom.name}")


def write_hashes() -> None:
    files = sorted(path for path in DIST.iterdir() if path.name != ".gitignore")
    lines = [f"{hash_file(path)}  {path.name}\n" for path in files]
    (DIST / "SHA256SUMS").write_text("".join(lines))


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BuildFailed as error:
        sys.exit(f"dist: {error}")
