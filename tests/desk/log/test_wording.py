"""The words of the audit log, its search and its exports."""

from __future__ import annotations

import pytest

from desk.log import exports, pages
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.markup import read_text

ROWS = [
    (
        "/log/?q=nothing-like-it",
        "no-records",
        "No matching records. Remove a filter or search for another word.",
    ),
    (
        "/log/exports/",
        "no-exports",
        "No exports yet. Filter the audit log, then export the results there.",
    ),
]


@pytest.mark.parametrize(("path", "testid", "text"), ROWS)
def test_the_pages_say(
    gate: Gate, as_: SignIn, path: str, testid: str, text: str
) -> None:
    propose(gate.agent)
    assert read_text(as_("otto").get(path), testid) == text


def test_a_search_that_was_cut_says_what_to_do() -> None:
    assert pages.SEARCH_CUT_NOTE == (
        "Only the newest 1,000 matching requests were searched. To find earlier ones,"
        " add a word or set the To date."
    )


def test_an_export_without_permission_says_why_it_failed() -> None:
    assert exports.NOT_PERMITTED == "Your permission to export was revoked."
