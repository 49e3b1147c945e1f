"""What nobody knows: the list, the page of one, and a person's answer."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from guardian.shortcuts import remove_perm

from journal import clock
from policies.models import Person, Queue
from reviews.choices import ExecutionStatus, Scope
from reviews.desk.components import visibility
from reviews.desk.unknown.lists import select_settleable
from reviews.executions import claims, record, run, settle
from reviews.models import Alarm, Execution, Grant, LookUp
from reviews.stops import stops
from reviews.tool_services import executors
from tests import worlds
from tests.conftest import Gate
from tests.reviews import backups, states
from tests.reviews.desk.conftest import SignIn
from tests.reviews.executions.test_reconcile import PENDING, doubtful, looked_up

REPORT = r'<dl[^>]*data-testid="late-report">.*?</dl>'
NO = {"happened": "no", "reason": "not in their ledger"}


def page(client: Client, execution: Execution) -> str:
    return client.get(f"/unknown/{execution.pk}/").content.decode()


def test_the_list_leads_to_each(gate: Gate, as_: SignIn) -> None:
    execution = states.unknown(gate)
    source = as_("sue").get("/unknown/").content.decode()
    assert f'href="/unknown/{execution.pk}/"' in source
    assert "Cannot be looked up" in source
    assert "You may say what happened" in source
    reads = as_("rita").get("/unknown/").content.decode()
    assert execution.pk in reads
    assert "You may say what happened" not in reads


def test_the_page_says_all_that_is_known(gate: Gate, as_: SignIn) -> None:
    execution = doubtful(gate)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=execution.queued_at)
    source = page(as_("sue"), execution)
    assert execution.idempotency_key in source
    assert execution.pk in source
    assert "Queryable" in source
    assert "it is not known to have asked" in source
    assert "nobody knows how it ended" in source
    assert "Sam Example, Sue Example" in source
    assert "The agent is told that it was executed." in source
    assert "it is proposed anew" in source


def test_who_can_settle_it_are_those_who_can(gate: Gate, as_: SignIn) -> None:
    execution = doubtful(gate)
    Person.objects.filter(pk=gate.sue.pk).update(email="")
    stops.create_stop(
        scope=Scope.REVIEWER, key=gate.sam.public_id, person=gate.adam, reason="gone"
    )
    assert [str(one) for one in visibility.list_settlers(execution)] == ["Sue Example"]
    assert select_settleable(gate.sue).count() == 1
    assert select_settleable(gate.sam).count() == 0


def test_what_its_service_said_is_there(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "find", lambda call: PENDING)
    execution = looked_up(doubtful(gate))
    source = page(as_("sue"), execution)
    assert "No clear answer" in source
    assert "Asked again by itself at" in source
    assert "Looked up once: no clear answer" in (
        as_("sue").get("/unknown/").content.decode()
    )


def test_what_was_reported_late_is_there_as_on_its_alarm(
    gate: Gate, as_: SignIn
) -> None:
    execution = states.unknown(gate)
    record.record_late_report(
        execution_id=execution.pk,
        fence=1,
        action_hash="sha256:" + "0" * 64,
        outcome=executors.build_success({"page": "<b>sale</b>"}),
        actor=claims.EXECUTOR_ACTOR,
    )
    client, alarm = as_("sue"), Alarm.objects.get(subject=execution.pk)
    there = client.get(f"/alarms/{alarm.pk}/").content.decode()
    for source in (page(client, execution), there):
        (said,) = re.findall(REPORT, source, re.S)
        assert "a worker of Holdpoint" in said
        assert "Not what was granted" in said
        assert "&lt;b&gt;sale" in said
        assert "It is kept as evidence." in said


def test_what_follows_is_what_a_retry_would_be_told(gate: Gate, as_: SignIn) -> None:
    execution, client = states.unknown(gate), as_("sue")
    assert "can have it tried again until" in page(client, execution)
    record.record_late_report(
        execution_id=execution.pk,
        fence=1,
        action_hash=execution.grant.action_hash,
        outcome=executors.build_success({"page": "sale"}),
        actor=claims.EXECUTOR_ACTOR,
    )
    assert "not tried again while an alarm says" in page(client, execution)
    now = clock.now()
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=now)
    assert "Its time to run is over" in page(client, execution)


def test_a_supervisor_has_it_looked_up_again(gate: Gate, as_: SignIn) -> None:
    execution = doubtful(gate, ran=True)
    client, url = as_("sue"), f"/unknown/{execution.pk}/look-up/"
    assert url in page(client, execution)
    assert client.get(url).status_code == 405
    source = client.post(url, follow=True).content.decode()
    assert "Settled by what the service says." in source
    assert "It happened, as its service says." in source
    assert client.post(url).status_code == 409
    assert LookUp.objects.count() == 1


def test_a_supervisor_says_what_happened(gate: Gate, as_: SignIn) -> None:
    execution = states.unknown(gate)
    client = as_("sue")
    response = client.post(f"/unknown/{execution.pk}/", NO, follow=True)
    source = response.content.decode()
    assert "Recorded." in source
    assert "It did not happen, as a person said." in source
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.FAILED


@pytest.mark.parametrize("sent", [{}, {"happened": "yes"}, {"reason": "sure"}])
def test_an_answer_needs_both_halves(
    gate: Gate, as_: SignIn, sent: dict[str, str]
) -> None:
    execution = states.unknown(gate)
    response = as_("sue").post(f"/unknown/{execution.pk}/", sent)
    assert response.status_code == 422
    source = response.content.decode()
    assert "Nothing was recorded." in source
    assert sent.get("reason", "") in source
    assert ('value="yes" checked' in source) is ("happened" in sent)


def test_who_was_slower_keeps_their_words(gate: Gate, as_: SignIn) -> None:
    execution = states.unknown(gate)
    client = as_("sue")
    page(client, execution)
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sam, happened=True, reason="I saw it"
    )
    response = client.post(f"/unknown/{execution.pk}/", NO)
    assert response.status_code == 409
    source = response.content.decode()
    assert "Your answer was not recorded." in source
    assert NO["reason"] in source


def test_who_may_not_settle_reads_why(gate: Gate, as_: SignIn) -> None:
    execution = states.unknown(gate)
    remove_perm("policies.decide", gate.sam, Queue.objects.get(name="money"))
    why = {
        "rita": "Your role does not allow this.",
        "sam": "You are not admitted to this queue.",
        "otto": "Your role does not allow this.",
        "owen": "Your role does not allow this.",
    }
    for name, said in why.items():
        client = as_(name)
        source = page(client, execution)
        assert f"<b>You cannot:</b> {said}" in source, name
        assert "Record what happened" not in source
        assert ("Sue Example" in source) is (name != "owen")
        assert client.post(f"/unknown/{execution.pk}/", NO).status_code == 403
        again = client.post(f"/unknown/{execution.pk}/look-up/")
        assert again.status_code == 403


def test_what_was_never_unknown_has_no_page(gate: Gate, as_: SignIn) -> None:
    execution = states.succeeded(gate)
    assert as_("sue").get(f"/unknown/{execution.pk}/").status_code == 404
    lost = states.unknown(gate)
    gate.rita.groups.clear()
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="money"))
    assert as_("rita").get(f"/unknown/{lost.pk}/").status_code == 404


def test_the_list_costs_the_same_however_long(
    gate: Gate, as_: SignIn, django_assert_max_num_queries
) -> None:
    for _ in range(3):
        states.unknown(gate)
    client = as_("sue")
    client.get("/unknown/")
    with django_assert_max_num_queries(16):
        client.get("/unknown/")


@pytest.mark.usefixtures("own_note")
def test_what_came_back_was_taken_by_nobody(gate: Gate, as_: SignIn) -> None:
    """Nobody made an attempt in this history: it is only not known to be untouched."""
    execution = backups.queued(gate, "pay_opaque")
    backups.restored(gate)
    run.run_execution(execution.pk)
    source = page(as_("sue"), execution)
    assert "Nobody is known to have taken it" in source
    assert "fence 0" not in source
