"""Every page of a framework and of a coding agent begins the same way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import framework_pages

HEADS = framework_pages.build_heads()


def test_every_page_has_its_first_lines() -> None:
    assert set(HEADS) == set(framework_pages.PAGES.glob("*.md"))


@pytest.mark.parametrize("page", HEADS, ids=lambda page: page.stem)
def test_a_page_begins_as_the_table_says(page: Path) -> None:
    title, _, rest = page.read_text().partition("\n\n")
    assert title.startswith("# ")
    assert rest.startswith(HEADS[page]), "python -m tests.house.framework_pages"
    block = HEADS[page].split("```")[1].strip().splitlines()
    assert [line.split()[0] for line in block[1:3]] == ["counterseal"] * 2
    assert len(block) <= 8
