"""The table of frameworks agrees with what the client can install, with the pages, and
with the programs."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest

from counterseal_client.adapters.flags import _parse_version
from counterseal_client.command_line.frameworks import FRAMEWORKS, Framework
from tests import quickstart
from tests.guards import ROOT

ROWS = pytest.mark.parametrize("row", FRAMEWORKS.values(), ids=FRAMEWORKS)
EXTRAS = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
NO_FRAMEWORKS = {"grants"}
REQUIREMENT = re.compile(r"([a-z0-9-]+)(?:\[\w+\])?>=([\d.]+)$")


@ROWS
def test_the_extra_installs_the_framework_from_the_first_release_on(
    row: Framework,
) -> None:
    if not row.package:
        assert row.name not in EXTRAS
        return
    found = [REQUIREMENT.match(text) for text in EXTRAS[row.name]]
    least = {match[1]: match[2] for match in found if match}
    assert _parse_version(least[row.package]) == tuple(
        int(part)
        for part in row.minimum.split(".")[: least[row.package].count(".") + 1]
    )
    assert row.is_too_old("0.0.1")
    assert not row.is_too_old(f"{row.minimum}.post1")


def test_every_extra_is_a_framework() -> None:
    assert set(EXTRAS) - NO_FRAMEWORKS <= set(FRAMEWORKS)


@ROWS
def test_the_program_says_how_it_is_started(row: Framework) -> None:
    head = row.read_program().split("import ")[0]
    if not row.is_typescript:
        head = ast.get_docstring(ast.parse(row.read_program())) or ""
    for words in filter(None, (row.start, row.resume, row.serve)):
        assert row.build_command(words) in head, words
    if row.package:
        assert row.install_command in head


def test_make_quickstart_tries_each_program_as_init_writes_it() -> None:
    tried = {example.file for example in quickstart.LIST.values()}
    assert tried == {row.file for row in FRAMEWORKS.values()}
