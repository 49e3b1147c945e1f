"""The pages in docs/: every link leads somewhere, every setting is described."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from hitl.environment import Counterseal
from reviews.holds import take
from tests.guards import ROOT
from tests.house import picture

README_LIMIT = 8_000  # bytes
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PACKAGES = "agents|client|demo|docs|hitl|journal|policies|reviews|tests"
FILE = re.compile(rf"`((?:{PACKAGES})/[\w./-]+\.\w+)`")
ARCHITECTURE = ROOT / "docs" / "architecture.md"
INVARIANTS = ROOT / "docs" / "invariants.md"
# A path and then `name`, `name`: what that module defines.
NAMED = re.compile(r"`(\w+/[\w/]+\.py)`((?:,?\s`\w+`)+)")
HEADING = re.compile(r"^#+ (.+)$", re.M)
# In Python and in sh: environ["PORT"], environ.get("PORT"), ${PORT:-...}, ${PORT:=...}
READ = re.compile(r"environ(?:\.get\(|\[)\"([A-Z_]+)\"|\$\{([A-Z_]+):")


def pages() -> list[Path]:
    single = ["README.md", "CHANGELOG.md", "client/README.md", "bench/README.md"]
    single.append("client/conformance/README.md")
    return [*(ROOT / name for name in single), *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def links(page: Path) -> Iterator[str]:
    """Links of a page that lead neither to another site nor out of code."""
    prose = CODE.sub("", FENCE.sub("", page.read_text()))
    return (link for link in LINK.findall(prose) if not urlsplit(link).scheme)


@pytest.mark.parametrize("document", pages(), ids=name_of)
def test_every_link_leads_somewhere(document: Path) -> None:
    for link in links(document):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        assert target.resolve().is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("document", pages(), ids=name_of)
def test_every_file_that_is_named_is_there(document: Path) -> None:
    for name in FILE.findall(document.read_text()):
        assert (ROOT / name).exists(), name


# A path in tests/ and `::test_name` behind it, and `kit:axis.check`.
TEST_ID = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
KIT_ID = re.compile(r"`kit:([\w.]+)`")
ATTACKS = ROOT / "docs" / "attacks.md"


@pytest.mark.parametrize("document", pages(), ids=name_of)
def test_every_test_that_is_named_is_there(document: Path) -> None:
    for file, name in TEST_ID.findall(document.read_text()):
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"


def test_every_attack_names_what_shows_its_defence() -> None:
    listed = (ROOT / "docs" / "frameworks.md").read_text()
    rows = [line for line in ATTACKS.read_text().splitlines() if line.startswith("| ")]
    for row in rows:
        if row.startswith(("| what is tried", "| ---")):
            continue
        shown_by = row.split("|")[3]
        assert TEST_ID.search(shown_by) or KIT_ID.search(shown_by), row
        for check in KIT_ID.findall(shown_by):
            assert f"| `{check}` |" in listed, check


def test_every_invariant_names_what_enforces_and_what_shows_it() -> None:
    _, *entries = re.split(r"^### ", INVARIANTS.read_text(), flags=re.M)
    numbers = [entry.partition("\n")[0] for entry in entries]
    assert numbers == [f"I{number}" for number in range(1, len(numbers) + 1)]
    for entry in entries:
        held = "**Not held yet**" not in entry
        assert ("\nEnforced in " in entry) == held, entry
        assert bool(TEST_ID.search(entry)) == held, entry


def test_the_readme_links_every_page() -> None:
    readme = ROOT / "README.md"
    linked = {(ROOT / link.partition("#")[0]).resolve() for link in links(readme)}
    for page in (ROOT / "docs").rglob("*.md"):
        assert {page, page.parent} & linked, page


def test_times_in_the_docs_are_those_of_the_code_and_the_shipped_policy() -> None:
    policy = yaml.safe_load((ROOT / "demo" / "policy.yaml").read_text())
    assert policy["recall"]["high"] == 10  # a refund's
    for page in ("README.md", "docs/authzen.md"):
        assert re.search("ten seconds", (ROOT / page).read_text()), page
    assert timedelta(minutes=5) == take.HOLD_TIME
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    assert "it ends after five minutes unless it is renewed" in glossary


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= README_LIMIT


def settings() -> set[str]:
    """Every variable of the environment that an installation reads."""
    names = {
        str(field.validation_alias or name).upper()
        for name, field in Counterseal.model_fields.items()
    }
    for path in (ROOT / "hitl" / "local").iterdir():
        if path.suffix in {".py", ".sh"}:
            names |= {one or two for one, two in READ.findall(path.read_text())}
    return names


@pytest.mark.parametrize("name", sorted(settings()))
def test_every_setting_is_described(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs" / "operations.md").read_text()


def test_the_decisions_have_one_form() -> None:
    """A number that nobody else has, a title, a date, and what it costs."""
    paths = sorted((ROOT / "docs" / "decisions").iterdir())
    for number, path in enumerate(paths, start=1):
        assert re.fullmatch(rf"{number:04}-[a-z-]+\.md", path.name)
        parts = ("**Decision.**", "**Why.**", "**Cost.**")
        text = path.read_text()
        assert re.match(r"# .+\n\n\d{4}-\d\d-\d\d\. Status: .+\. Tags: .+\.\n", text)
        assert all(part in text for part in parts), path


@pytest.mark.parametrize("document", [ARCHITECTURE, INVARIANTS], ids=name_of)
def test_the_pages_name_what_the_modules_define(document: Path) -> None:
    named = NAMED.findall(document.read_text())
    assert len(named) > 20
    for path, names in named:
        text = (ROOT / path).read_text()
        for name in re.findall(r"\w+", names):
            assert re.search(rf"^(def |class |    )?{name}\b", text, re.M), (path, name)


def test_the_picture_of_the_architecture_is_fresh() -> None:
    assert picture.PICTURE.read_text() == picture.draw()
