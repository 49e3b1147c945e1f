"""The thirty checks, as the page lists them and as the kit runs them."""

from __future__ import annotations

import re
from collections import Counter

from counterseal_conformance.catalogue import AXES, CHECKS
from counterseal_conformance.checks import (
    admin,
    channels,
    durable,
    idempotent,
    typed,
    verified,
)
from counterseal_conformance.runner import ABSENT, UNEDITABLE
from tests.guards import ROOT

PAGE = (ROOT / "docs" / "frameworks.md").read_text()
ROW = re.compile(r"^\| `([a-z]+\.[a-z_]+)` \| (.+) \|$", re.M)
MODULES = (durable, idempotent, typed, channels, verified, admin)


def test_there_are_six_axes_of_five_checks() -> None:
    axes = Counter(name.partition(".")[0] for name in CHECKS)
    assert axes == dict.fromkeys(AXES, 5)


def test_the_page_lists_every_check_with_its_sentence() -> None:
    assert ROW.findall(PAGE) == list(CHECKS.items())
    for title in AXES.values():
        assert f"\n### {title}\n" in PAGE


def test_every_check_can_be_run() -> None:
    assert [name for module in MODULES for name in module.CHECKS] == list(CHECKS)
    assert {*ABSENT, *UNEDITABLE} < set(CHECKS)
