"""The types of the package, of its examples and of the kit's agents, where the compiler
is installed: `npm ci` in client/typescript. CI has none: there, Node runs the same
source without its types."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.client.typescript.node import NODE, PACKAGE

COMPILER = PACKAGE / "node_modules" / "typescript" / "lib" / "tsc.js"


def test_the_source_has_no_fault_of_types() -> None:
    if not COMPILER.exists():
        pytest.skip("typescript is not installed: npm ci in client/typescript")
    command = [NODE, str(COMPILER), "--noEmit", "--project", str(PACKAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_lock_names_no_registry() -> None:
    """`omit-lockfile-registry-resolved` in .npmrc: whoever installs brings their own
    registry, and the hashes decide."""
    locked = json.loads((PACKAGE / "package-lock.json").read_text())["packages"]
    assert not [name for name, row in locked.items() if "resolved" in row]
    assert all("integrity" in row for name, row in locked.items() if name)
