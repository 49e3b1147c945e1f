"""Stop and its lifting, and the settling of unknown outcomes."""

from __future__ import annotations

import pytest
from guardian.shortcuts import remove_perm

from policies.models import Queue
from reviews import stops
from reviews.choices import ExecutionStatus, Scope, StopMode
from reviews.models import Execution, Stop
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews import states
from tests.reviews.views.conftest import SignIn

RUN = "/stop/?agent=riley&thread=t-1"


def stopping(scope: str, key: str = "", mode: str = "stopped") -> dict[str, str]:
    return {"target": f"{scope}:{key}", "mode": mode, "reason": "runs wild"}


def test_a_supervisor_stops_a_run(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    client = as_("sue")
    source = client.get(RUN).content.decode()
    assert "1 request waiting for people" in source
    response = client.post(RUN, stopping("thread", "riley/t-1"), follow=True)
    source = response.content.decode()
    assert "Halting. Nothing new starts." in source
    assert "Run riley/t-1" in source
    assert (Stop.objects.get().scope, Stop.objects.get().mode) == ("thread", "stopped")


def test_it_says_halted_only_when_nothing_runs(gate: Gate, as_: SignIn) -> None:
    execution = states.claimed(gate)
    key = stops.thread_key("riley", execution.proposal.thread)
    stops.stop(scope=Scope.THREAD, key=key, person=gate.sue, reason="x")
    assert b"Halting, 1 still running" in as_("sue").get("/stop/").content
    Execution.objects.filter(pk=execution.pk).update(
        status=ExecutionStatus.UNKNOWN, lease_until=None
    )
    assert b"Halted" in as_("sue").get("/stop/").content


def test_a_reason_is_needed_and_the_choice_is_kept(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    sent = stopping("agent", "riley", "paused") | {"reason": " "}
    response = as_("sue").post(RUN, sent)
    source = response.content.decode()
    assert response.status_code == 422
    assert "Nothing was stopped." in source
    assert 'value="agent:riley" checked' in source
    assert not Stop.objects.exists()


def test_a_reviewer_is_offered_a_pause_and_no_more(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    client = as_("rita")
    source = client.get(RUN).content.decode()
    assert 'value="paused"' in source
    assert 'value="stopped"' not in source
    assert 'value="agent:riley"' not in source
    assert client.post(RUN, stopping("thread", "riley/t-1")).status_code == 403
    assert (
        client.post(RUN, stopping("thread", "riley/t-1", "paused")).status_code == 302
    )


def test_only_administrators_stop_everything(gate: Gate, as_: SignIn) -> None:
    assert as_("sue").post("/stop/", stopping("everything")).status_code == 403
    assert b'value="everything:"' in as_("adam").get("/stop/").content
    assert as_("adam").post("/stop/", stopping("everything")).status_code == 302


def test_a_foolish_target_is_refused(gate: Gate, as_: SignIn) -> None:
    assert as_("adam").post("/stop/", stopping("galaxy", "x")).status_code == 422


def test_lifting_takes_a_reason_and_for_everything_two_people(
    gate: Gate, as_: SignIn
) -> None:
    row = stops.stop(
        scope=Scope.EVERYTHING, person=gate.adam, mode=StopMode.PAUSED, reason="x"
    )
    url = f"/stop/{row.pk}/lift/"
    assert as_("sue").post(url, {"reason": ""}).status_code == 422
    first = as_("sue").post(url, {"reason": "fixed"}, follow=True)
    assert "A second person must agree." in first.content.decode()
    assert as_("sue").post(url, {"reason": "fixed"}).status_code == 403
    second = as_("sam").post(url, {"reason": "fixed"}, follow=True)
    assert "On again." in second.content.decode()
    assert as_("rita").post(url, {"reason": "fixed"}).status_code in {403, 404}
    assert as_("sue").get(url).status_code == 405


def test_a_supervisor_says_what_happened(gate: Gate, as_: SignIn) -> None:
    execution = states.unknown(gate)
    client = as_("sue")
    assert execution.idempotency_key in client.get("/unknown/").content.decode()
    sent = {"happened": "no", "reason": "not in their ledger"}
    response = client.post(f"/unknown/{execution.pk}/", sent, follow=True)
    assert "Recorded." in response.content.decode()
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.FAILED


@pytest.mark.parametrize("sent", [{}, {"happened": "yes"}, {"reason": "sure"}])
def test_an_answer_needs_both_halves(
    gate: Gate, as_: SignIn, sent: dict[str, str]
) -> None:
    execution = states.unknown(gate)
    response = as_("sue").post(f"/unknown/{execution.pk}/", sent)
    assert response.status_code == 422
    assert "Nothing was recorded." in response.content.decode()
    if "reason" in sent:
        assert sent["reason"] in response.content.decode()


def test_who_may_not_settle_sees_none(gate: Gate, as_: SignIn) -> None:
    execution = states.unknown(gate)
    remove_perm("policies.decide", gate.sam, Queue.objects.get(name="money"))
    sent = {"happened": "yes", "reason": "sure"}
    for name in ("rita", "sam", "otto", "owen"):
        client = as_(name)
        assert execution.pk not in client.get("/unknown/").content.decode()
        assert client.post(f"/unknown/{execution.pk}/", sent).status_code == 404
    assert as_("sue").get(f"/unknown/{execution.pk}/").status_code == 405


def test_the_queue_says_that_something_is_unknown(gate: Gate, as_: SignIn) -> None:
    states.unknown(gate)
    assert b"1 execution has an unknown outcome" in as_("sue").get("/queue/").content
    assert b"unknown outcome" not in as_("rita").get("/queue/").content
