"""What came of a batch, item by item, and what can still be done with it."""

from __future__ import annotations

from typing import Any

import pytest

from desk.request import outcome
from journal import errors
from reviews.batches import follow_up
from reviews.choices import ExecutionStatus, RequestStatus
from reviews.executions import settle
from reviews.models import Decision, Execution
from tests import factories, worlds
from tests.conftest import Gate
from tests.desk.batches.batch_form import ASKED, Form, statuses, url
from tests.desk.conftest import SignIn
from tests.markup import find_element, read_page
from tests.reviews import states
from tests.reviews.batches.batching import decide, formed, ran


def test_the_result_page_recalls_retries_and_runs_the_rest(
    gate: Gate, as_: SignIn
) -> None:
    states.recall_windows(gate)
    batch = formed(gate, *["7.00"] * 4)
    client = as_("rita")
    Form(client, batch).open_samples().press("arm:approve").press("commit", stop="1")
    text = read_page(client.get(url(batch)))
    assert "4" in find_element(text, "recall")
    client.post(url(batch, "recall"))
    assert statuses() == {RequestStatus.PENDING}
    assert 'data-testid="recall"' not in read_page(client.get(url(batch)))
    listed = find_element(read_page(client.get("/batches/")), "decided-batches")
    assert "Undone" in listed
    assert "Decided</span>" not in "".join(listed.split())


def test_what_failed_is_retried_and_what_waits_is_run(gate: Gate, as_: SignIn) -> None:
    worlds.WORLD["declined"] = {"C-1"}
    batch = formed(gate, *["7.00"] * 4)
    client = as_("rita")
    Form(client, batch).open_samples().press("arm:approve").press("commit", stop="1")
    ran(batch)
    text = read_page(client.get(url(batch)))
    assert "1" in find_element(text, "retry")
    assert "2" in find_element(text, "run-rest")
    assert text.count('data-state="behind"') == 2
    client.post(url(batch, "run"))
    ran(batch)
    worlds.WORLD["declined"] = set()
    client.post(url(batch, "retry"))
    ran(batch)
    assert read_page(client.get(url(batch))).count('data-state="executed"') == 4


def test_the_fragment_is_empty_while_nothing_changes(gate: Gate, as_: SignIn) -> None:
    states.recall_windows(gate)
    batch = formed(gate)
    client = as_("rita")
    Form(client, batch).open_samples().press("arm:approve").press("commit")
    first = client.get(url(batch, "live"), headers=ASKED)
    again = client.get(
        url(batch, "live"), headers={**ASKED, "If-None-Match": first["ETag"]}
    )
    assert (first.status_code, again.status_code) == (200, 204)


def test_items_without_their_votes_are_not_called_approved(
    gate: Gate, as_: SignIn
) -> None:
    states.recall_windows(gate)
    batch = formed(gate, *["7.00"] * 4)
    client = as_("rita")
    Form(client, batch).open_samples().press("arm:approve").press("commit")
    text = read_page(client.get(url(batch)))
    assert text.count('data-state="recallable"') == 4
    vote = Decision.objects.earliest("pk")
    worlds.rewrite(Decision, vote.pk, counts=False, step=None)
    text = read_page(client.get(url(batch)))
    assert text.count('data-state="recallable"') == 3
    assert text.count('data-state="stuck"') == 1


def test_what_was_recalled_stays_on_the_page_and_says_so(
    gate: Gate, as_: SignIn
) -> None:
    states.recall_windows(gate)
    batch = formed(gate, *["7.00"] * 4)
    client = as_("rita")
    Form(client, batch).open_samples().press("arm:approve").press("commit")
    client.post(url(batch, "recall"))
    text = read_page(client.get(url(batch)))
    assert text.count('data-state="recalled"') == 4
    assert "4 repayments" in text
    assert batch.pk in read_page(client.get("/batches/"))


def test_the_result_says_the_verdict_and_leads_to_the_page(
    gate: Gate, as_: SignIn
) -> None:
    batch = formed(gate)
    Form(as_("rita"), batch).press("arm:reject").press(
        "commit", reason_code="duplicate"
    )
    for name, opens in (("rita", True), ("tom", False), ("sue", True)):
        text = read_page(as_(name).get(url(batch)))
        assert "Rejected " in find_element(text, "verdict")
        assert ('data-testid="as-seen-link"' in text) is opens


def test_of_a_batch_that_waits_nothing_is_tried_again_alone(
    gate: Gate, as_: SignIn
) -> None:
    """It would wait behind the failure that it was."""
    worlds.WORLD["declined"] = {"C-1"}
    batch = decide(formed(gate, *["7.00"] * 5), gate.rita)
    ran(batch)
    failed = Execution.objects.get(status=ExecutionStatus.FAILED)
    with pytest.raises(errors.Conflict, match=settle.BATCH_HALTED):
        settle.retry_execution(execution_id=failed.pk, person=gate.rita)
    behind = batch.executions.filter(status=ExecutionStatus.QUEUED).first()
    assert behind is not None
    for execution in (failed, behind):
        path = f"/requests/{execution.proposal.request.pk}/"
        source = read_page(as_("rita").get(path))
        assert outcome.BATCH_HALTED_TEXT in source
        assert f'href="/batches/{batch.pk}/"' in source
        assert 'class="pie' not in find_element(source, "state")  # does not start yet
        assert 'data-testid="retry"' not in source
    worlds.WORLD["declined"] = set()
    follow_up.retry_failed(batch_id=batch.pk, person=gate.rita)
    assert ran(batch) == ["succeeded"] * 5


def owner_of(args: dict[str, Any]) -> dict[str, Any]:
    """A reader that knows who is paid."""
    return {"before": {}, "facts": {"owner": f"Owner of {args['customer']}"}}


def test_the_result_has_the_columns_that_the_policy_names_and_no_empty_one(
    gate: Gate, as_: SignIn
) -> None:
    document = factories.document_of_tests()
    document["tools"]["repay"] |= {
        "reader": {"kind": "callable", "path": f"{__name__}.owner_of"},
        "facts": ["owner"],
        "review": {
            "columns": ["owner"],
            "result": {"done": "Payment", "absent": "Absent"},
        },
    }
    factories.policy(gate.people, document)
    batch = formed(gate, *["7.00"] * 2)
    client = as_("rita")
    Form(client, batch).open_samples().press("arm:approve").press("commit")
    waiting = read_page(client.get(url(batch)))
    assert "Owner of C-0" in waiting
    assert "Payment" not in waiting
    ran(batch)
    text = read_page(client.get(url(batch)))
    assert "Payment" in text
    assert "Absent" not in text
    assert 'data-testid="tool-response"' not in text
