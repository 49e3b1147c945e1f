"""What nobody knows: the list, the page of one, and a person's answer."""

from __future__ import annotations

import re

import pytest
from django.db.models import F
from django.test import Client
from guardian.shortcuts import remove_perm

from desk.components import visibility
from desk.unknown import detail, lists
from desk.unknown.lists import select_settleable
from journal import clock, errors
from policies.choices import ExecutionClass
from policies.models import Person, Queue
from reviews import permissions
from reviews.choices import ExecutionStatus, Scope
from reviews.executions import claims, record, run, settle
from reviews.models import Alarm, Execution, Grant, LookUp
from reviews.stops import stops
from reviews.tool_services import executors
from tests import worlds
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.markup import find_element, read_page, read_text
from tests.reviews import backups, states
from tests.reviews.executions.test_reconcile import PENDING, doubtful, looked_up

MINE, NO_FOLLOWS = 'data-testid="mine"', "follows-no"
NO = {"happened": "no", "reason": "not in their ledger"}


def join_wording(execution: Execution) -> str:
    return "".join(part.text for part in lists.describe_outcome(execution))


def page(client: Client, execution: Execution) -> str:
    return read_page(client.get(f"/unknown/{execution.pk}/"))


def test_the_list_leads_to_each(gate: Gate, as_: SignIn) -> None:
    execution = states.unknown(gate)
    source = read_page(as_("sue").get("/unknown/"))
    assert f'href="/unknown/{execution.pk}/"' in source
    assert MINE in source
    reads = read_page(as_("rita").get("/unknown/"))
    assert execution.pk in reads
    assert MINE not in reads


def test_the_page_says_all_that_is_known(gate: Gate, as_: SignIn) -> None:
    execution = doubtful(gate)
    worlds.rewrite(Grant, execution.grant_id, expires_at=execution.queued_at)
    source = page(as_("sue"), execution)
    assert execution.idempotency_key in source
    assert execution.pk in source
    assert detail.CLASS_SENTENCES[ExecutionClass.QUERYABLE] in source
    assert "no call to the service" in find_element(source, "last-step")
    assert 'data-ended="execution.unknown"' in source
    assert "Other supervisors who can do this: Sam Example." in source
    assert find_element(source, "follows-yes")
    assert "proposed again" in find_element(source, "follows-no")


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
    look_ups = find_element(source, "look-ups")
    assert "The answer says neither succeeded nor failed" in look_ups
    assert "ambiguous" not in look_ups
    assert 'data-testid="next-look-up"' in source
    assert lists.LOOK_UP_WORDS["unknown"] in read_text(
        as_("sue").get("/unknown/"), "looked"
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
    there = read_page(client.get(f"/alarms/{alarm.pk}/"))
    for source in (page(client, execution), there):
        assert source.count('data-testid="late-report"') == 1
        assert "&lt;b&gt;sale" in find_element(source, "late-report")


def test_what_follows_is_what_a_retry_would_be_told(gate: Gate, as_: SignIn) -> None:
    execution, client = states.unknown(gate), as_("sue")
    assert "can retry it until" in find_element(page(client, execution), NO_FOLLOWS)
    record.record_late_report(
        execution_id=execution.pk,
        fence=1,
        action_hash=execution.grant.action_hash,
        outcome=executors.build_success({"page": "sale"}),
        actor=claims.EXECUTOR_ACTOR,
    )
    assert "while an alarm" in find_element(page(client, execution), NO_FOLLOWS)
    now = clock.now()
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=now)
    assert "window has ended" in find_element(page(client, execution), NO_FOLLOWS)


def test_a_supervisor_has_it_looked_up_again(gate: Gate, as_: SignIn) -> None:
    execution = doubtful(gate, ran=True)
    client, url = as_("sue"), f"/unknown/{execution.pk}/look-up/"
    assert url in page(client, execution)
    assert client.get(url).status_code == 405
    answer = client.post(url, follow=True)
    assert read_text(answer, "message")
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED
    assert read_text(answer, "outcome") == join_wording(execution)
    assert client.post(url).status_code == 409
    assert LookUp.objects.count() == 1


def test_a_supervisor_says_what_happened(gate: Gate, as_: SignIn) -> None:
    execution = states.unknown(gate)
    client = as_("sue")
    response = client.post(f"/unknown/{execution.pk}/", NO, follow=True)
    assert read_text(response, "message")
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.FAILED
    assert read_text(response, "outcome") == join_wording(execution)


def test_another_attempt_than_was_read_is_not_settled(gate: Gate, as_: SignIn) -> None:
    execution = states.unknown(gate)
    client, path = as_("sue"), f"/unknown/{execution.pk}/"
    (shown,) = re.findall(r'name="shown" value="([^"]+)"', page(client, execution))
    Execution.objects.filter(pk=execution.pk).update(fence=F("fence") + 1)
    answer = client.post(path, {**NO, "shown": shown})
    assert answer.status_code == 409
    assert "the number of attempts changed" in read_page(answer)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.UNKNOWN
    (shown,) = re.findall(r'name="shown" value="([^"]+)"', read_page(answer))
    assert client.post(path, {**NO, "shown": shown}).status_code == 302


@pytest.mark.parametrize("sent", [{}, {"happened": "yes"}, {"reason": "sure"}])
def test_an_answer_needs_both_halves(
    gate: Gate, as_: SignIn, sent: dict[str, str]
) -> None:
    execution = states.unknown(gate)
    response = as_("sue").post(f"/unknown/{execution.pk}/", sent)
    assert response.status_code == 422
    source = read_page(response)
    assert 'id="problem"' in source
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
    assert read_text(response, "problem")
    assert NO["reason"] in read_page(response)


def test_who_may_not_settle_reads_why(gate: Gate, as_: SignIn) -> None:
    execution = states.unknown(gate)
    remove_perm("policies.decide", gate.sam, Queue.objects.get(name="money"))
    for name in ("rita", "sam", "otto", "owen"):
        with pytest.raises(errors.NotPermitted) as refused:
            permissions.check_can_settle_unknown(gate.people[name], execution)
        client = as_(name)
        source = page(client, execution)
        said = find_element(source, "why-not").split(">")[1].split("<")[0]
        assert said, name
        assert said in refused.value.detail, name
        assert 'data-testid="record"' not in source
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
    assert detail.NO_ATTEMPT in find_element(source, "last-step")
    assert "fence 0" not in source
