"""The words of the pages of batches."""

from __future__ import annotations

import pytest

from desk.batches import commit, selection
from desk.batches.selection import BatchChanges
from journal.errors import build_field_error
from reviews.batches import formation
from reviews.choices import ExecutionStatus
from reviews.models import Batch, Execution
from tests import factories, worlds
from tests.conftest import Gate
from tests.desk.batches.batch_form import Form, url
from tests.desk.conftest import SignIn
from tests.markup import read_text
from tests.reviews import states
from tests.reviews.batches.batching import decide, formed, members, ran

PENDING = [
    ("state", "Pending your decision"),
    ("tier", "High Requires 1 approval each"),
    ("approvals", "1 reviewer for each item"),
    (
        "undecided",
        "Each item expires at its own deadline. It is never approved automatically.",
    ),
    ("selected", "4 of 4 selected"),
    ("select-only", "Select only these"),
    ("verb-approve", "Approve these 4 A"),
]
CHANGES = [
    (0, ""),
    (1, "1 item changed, left or joined since you opened this page."),
    (3, "3 items changed, left or joined since you opened this page."),
]
LEFT_OUT = [
    (0, ""),
    (1, "1 unselected item stays in the queue."),
    (2, "2 unselected items stay in the queue."),
]
UNOPENED = [
    (1, "Open the sample row before you approve."),
    (3, "Open 3 sample rows before you approve."),
]
HALTED = [
    ("state", "1 completed 1 failed 2 not run Stopped after a failure; the rest has"),
    ("retry", "Retry 1 failed Sending…"),
    ("run-rest", "Run remaining 2 Sending…"),
    ("tool-response", "Tool response"),
]
FOLLOWS = [
    (
        "service",
        0,
        "They run immediately, one after another. The approvals cannot be undone.",
    ),
    (
        "service",
        60,
        "They run 1 minute after approval, one after another. You can undo all of"
        " them until then (Z).",
    ),
    (
        "agent",
        0,
        "The agent may perform them immediately. The approvals cannot be undone.",
    ),
]
DONE = [
    ("recall", "4 approvals undone. Nothing was executed."),
    ("retry", "1 item queued again."),
    ("run", "Remaining items resumed. Paused items still wait."),
]


def noted(gate: Gate) -> Batch:
    """Four repayments with two notes, so that the page offers a filter."""
    for number, note in enumerate(["late", "late", "broken", "late"]):
        args = {"customer": f"C-{number}", "amount": "7.00", "currency": "USD"}
        factories.propose(
            gate.agent, "repay", args={**args, "note": note}, thread=f"s-{number}"
        )
    formation.form_missed_batches()
    return Batch.objects.get()


def halted(gate: Gate) -> Batch:
    worlds.WORLD["declined"] = {"C-1"}
    batch = decide(formed(gate, *["7.00"] * 4), gate.rita)
    ran(batch)
    assert Execution.objects.filter(status=ExecutionStatus.FAILED).count() == 1
    return batch


@pytest.mark.parametrize(("testid", "text"), PENDING)
def test_a_pending_batch_says(gate: Gate, as_: SignIn, testid: str, text: str) -> None:
    assert read_text(as_("rita").get(url(noted(gate))), testid) == text


def test_the_list_says_what_each_needs(gate: Gate, as_: SignIn) -> None:
    formed(gate)
    assert read_text(as_("rita").get("/batches/"), "required") == "1 reviewer each"


@pytest.mark.parametrize(("testid", "text"), HALTED)
def test_a_batch_that_stopped_at_a_failure_says(
    gate: Gate, as_: SignIn, testid: str, text: str
) -> None:
    page = as_("rita").get(url(halted(gate)))
    assert read_text(page, testid).startswith(text)


@pytest.mark.parametrize(("executor", "seconds", "text"), FOLLOWS)
def test_what_follows_an_approval_depends_on_who_performs_it(
    gate: Gate, as_: SignIn, executor: str, seconds: int, text: str
) -> None:
    document = factories.document_of_tests()
    document["recall"]["high"] = seconds
    if executor == "agent":
        document["tools"]["repay"]["executor"] = {"kind": "agent"}
    factories.policy(gate.people, document)
    form = Form(as_("rita"), formed(gate)).open_samples().press("arm:approve")
    assert text in form.text


@pytest.mark.parametrize(("act", "text"), DONE)
def test_an_act_is_confirmed(gate: Gate, as_: SignIn, act: str, text: str) -> None:
    if act == "recall":
        states.recall_windows(gate)
        batch = decide(formed(gate, *["7.00"] * 4), gate.rita)
        said = read_text(as_("rita").get(url(batch)), "recall")
        assert said == "Undo all 4 Sending… Z"
    else:
        batch = halted(gate)
    done = as_("rita").post(url(batch, act), follow=True)
    assert read_text(done, "message") == text


def test_a_batch_with_too_few_items_says_so(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate, "7.00", "8.00")
    factories.decide(members(batch)[0].request, gate.tom)
    said = read_text(as_("rita").get(url(batch)), "dissolved")
    assert said == "Too few items are left. Decide each one separately."


def test_a_changed_item_says_so(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    form = Form(as_("rita"), batch)
    member = members(batch)[1]
    args = {**member.version.revision.args, "amount": "70.00"}
    factories.revised(gate.agent, member.request.proposal, args)
    form.press("refresh")
    assert "Changed to version 2 at " in form.text


@pytest.mark.parametrize(("count", "text"), CHANGES)
def test_changes_are_counted(count: int, text: str) -> None:
    rows = tuple(build_field_error(f"r-{n}", "x") for n in range(count))
    assert BatchChanges(rows, over=False).said == text


def test_a_batch_that_is_over_says_so() -> None:
    said = "This batch can no longer be decided. Nothing will be recorded."
    assert BatchChanges((), over=True).said == said


@pytest.mark.parametrize(("count", "text"), LEFT_OUT)
def test_what_is_left_out_is_counted(count: int, text: str) -> None:
    assert selection.describe_left_out(count) == text


@pytest.mark.parametrize(("left", "text"), UNOPENED)
def test_unopened_samples_are_counted(left: int, text: str) -> None:
    assert commit.describe_unopened_samples(left) == text
