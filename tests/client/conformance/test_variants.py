"""The frameworks of the kit, and what its distribution needs for each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from counterseal_conformance.variants import FRAMEWORKS, VARIANTS, list_variants
from tests import conformance
from tests.guards import ROOT

CLIENT = ROOT / "client"


def read_project(folder: Path) -> dict[str, Any]:
    text = (folder / "pyproject.toml").read_text()
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


def test_each_framework_is_an_extra_with_its_adapter() -> None:
    needs = read_project(conformance.KIT)["optional-dependencies"]
    python = {n for n in FRAMEWORKS if not VARIANTS[list_variants(n)[0]].under_node}
    assert set(needs) == python
    client = read_project(CLIENT)["optional-dependencies"]
    for name in python & set(client):
        assert f"counterseal-client[{name}]" in needs[name]


def test_only_its_command_knows_the_kit() -> None:
    modules = (CLIENT / "counterseal_client").rglob("*.py")
    users = [path.stem for path in modules if "_conformance" in path.read_text()]
    assert users == ["conformance"]
