"""Nothing in the tree refers to what is not in it."""

from __future__ import annotations

import pytest

from tests.house.references import Tree, find_all_broken, find_broken, list_files

MODULE = "reviews/some_module.py"


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree(list_files())


def test_every_reference_leads_somewhere() -> None:
    assert find_all_broken() == {}


@pytest.mark.parametrize(
    ("name", "text", "broken"),
    [
        (MODULE, "# Refused (gone.md 6).", ["gone.md"]),
        (MODULE, '"""As docs/gone.md says."""', ["docs/gone.md"]),
        (MODULE, '"""The order is that of reviews/gone.py."""', ["reviews/gone.py"]),
        (MODULE, '"""A page in `reviews/gone/`."""', ["reviews/gone/"]),
        (
            MODULE,
            '"""Raises what `reviews.locks.gone` does."""',
            ["reviews.locks.gone"],
        ),
        (MODULE, 'raise Error("Read docs/gone.md first.")', ["docs/gone.md"]),
        (MODULE, '"""Nobody votes twice [I10]."""', ["I10"]),
        (MODULE, '"""Nobody (docs/invariants.md I99)."""', ["I99"]),
        (MODULE, "# It survives a restore (T99).", ["T99"]),
        ("docs/page.md", "Read [the page](gone.md#part).", ["gone.md"]),
        ("docs/page.md", "Begin in `policies/gone.py`.", ["policies/gone.py"]),
        (
            "templates/page.html",
            '{% include "reviews/gone.html" %}',
            ["reviews/gone.html"],
        ),
        ("tests/test_page.py", '"""Shown by test_gone.py."""', ["test_gone.py"]),
    ],
)
def test_a_reference_that_leads_nowhere_is_found(
    tree: Tree, name: str, text: str, broken: list[str]
) -> None:
    assert list(find_broken(name, text, tree)) == broken


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            MODULE,
            "# The order stands in reviews/locks.py, the states in docs/states.md.",
        ),
        (MODULE, '"""One vote (docs/invariants.md I10, I11 and I18)."""'),
        (
            MODULE,
            '"""The desk in `desk/`, and `reviews.locks.lock_request`."""',
        ),
        (MODULE, '"""A neighbour: locks.py, and a template: desk/queue/queue.html."""'),
        (MODULE, 'path = ROOT / "gone.md"'),
        ("docs/page.md", "[gone.md](invariants.md#i8), `~/.config/gone.toml`"),
        ("docs/page.md", "Open http://127.0.0.1/gone.html or /api/v1/gone.json."),
        ("tests/test_page.py", '"""T4, I10: nothing is lost."""'),
        ("tests/test_page.py", 'write("cat src/gone.py")'),
    ],
)
def test_a_reference_that_leads_somewhere_is_none(
    tree: Tree, name: str, text: str
) -> None:
    assert list(find_broken(name, text, tree)) == []
