"""The words that confirm what a supervisor did on the workload page."""

from __future__ import annotations

import pytest

from desk.workload.views import _describe_extension, _describe_sharing
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.desk.workload.test_views import crowded as crowded
from tests.markup import read_text
from tests.reviews.test_workload import waiting


@pytest.mark.parametrize(
    ("count", "wanted", "text"),
    [
        (0, 0, "No deadline in the next 30 minutes can be extended."),
        (1, 1, "Extended 1 request."),
        (2, 5, "Extended 2 requests. 3 could not be extended."),
    ],
)
def test_an_extension_says_how_many(count: int, wanted: int, text: str) -> None:
    assert _describe_extension(count, wanted) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "There is no unclaimed request that Tom can decide."),
        (
            1,
            "1 request assigned to Tom, who is notified. Others can still decide.",
        ),
        (
            5,
            "5 requests assigned to Tom, who is notified. Others can still decide.",
        ),
    ],
)
def test_an_assignment_says_to_whom(count: int, text: str) -> None:
    assert _describe_sharing(count, "Tom") == text


def test_a_reviewer_reads_that_supervisors_see_it_too(gate: Gate, as_: SignIn) -> None:
    waiting(gate, 2)
    text = read_text(as_("rita").get("/queue/"), "overload")
    assert text == "The queue is over capacity. Supervisors see this too."
