"""What ran without asking: read, marked as seen, called a near miss."""

from __future__ import annotations

import pytest

from desk.components import retry
from journal import clock
from reviews.choices import Scope
from reviews.executions import claims, record
from reviews.executions import run as executions
from reviews.models import Execution, Sighting
from reviews.stops import stops
from reviews.tool_services.executors import EffectOutcome
from tests import worlds
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.markup import read_page, read_text
from tests.reviews import states

MARK_ALL = 'data-testid="mark-all"'


def test_it_is_marked_as_seen_one_by_one_or_all(gate: Gate, as_: SignIn) -> None:
    for label in ("a", "b", "c"):
        propose(gate.agent, "tag", args={"label": label}, thread=f"t-{label}")
    first, *others = Execution.objects.values_list("pk", flat=True)
    rita = as_("rita")
    assert "3" in read_text(rita.get("/announced/"), "mark-all")
    rita.post("/announced/seen/", {"seen": first})
    left = rita.get("/announced/")
    assert "2" in read_text(left, "mark-all")
    assert read_text(left, "badge-announced") == "2"
    rita.post("/announced/seen/", {"shown": others})
    assert MARK_ALL not in read_page(rita.get("/announced/"))
    assert "3" in read_text(as_("tom").get("/announced/"), "mark-all")


def test_a_near_miss_is_noted_for_everybody(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent, "tag")
    pk = Execution.objects.get().pk
    sent = {"near_miss": pk, "shown": pk}
    response = as_("rita").post("/announced/seen/", sent, follow=True)
    assert read_text(response, "message")
    for name in ("rita", "tom"):
        assert read_text(as_(name).get("/announced/"), "near-miss")


@pytest.mark.parametrize("name", ["otto", "adam", "owen"])
def test_who_only_reads_marks_nothing(gate: Gate, as_: SignIn, name: str) -> None:
    propose(gate.agent, "tag")
    sent = {"seen": Execution.objects.get().pk}
    as_(name).post("/announced/seen/", sent)
    assert not Sighting.objects.exists()
    assert as_(name).get("/announced/seen/").status_code == 405


def test_nonsense_is_ignored(gate: Gate, as_: SignIn) -> None:
    for sent in ({}, {"seen": "x-nothing"}, {"shown": ["", "a" * 500]}):
        assert as_("rita").post("/announced/seen/", sent).status_code == 302
    assert not Sighting.objects.exists()


@pytest.mark.parametrize("rows", [1, 8])
def test_its_queries_do_not_grow(
    gate: Gate, as_: SignIn, django_assert_max_num_queries, rows: int
) -> None:
    for number in range(rows):
        propose(gate.agent, "tag", args={"label": str(number)}, thread=f"t-{number}")
    client = as_("rita")
    client.get("/announced/")
    with django_assert_max_num_queries(8):
        client.get("/announced/")


def test_a_known_failure_that_nobody_was_asked_about_is_tried_again(
    gate: Gate, as_: SignIn
) -> None:
    execution = propose(gate.agent, "tag").executions.get()
    claim = claims.claim_execution(
        execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR
    )
    assert claim is not None
    record.record_outcome(
        execution_id=execution.pk,
        fence=claim.fence,
        outcome=EffectOutcome("failed", code="declined"),
        actor=claims.EXECUTOR_ACTOR,
    )
    run, url = "/threads/riley/t-1/", f"/effects/{execution.pk}/retry/"
    for name, offered in {"rita": True, "sue": True, "otto": False}.items():
        assert (url in read_page(as_(name).get(run))) is offered, name
    assert as_("otto").post(url).status_code == 403
    assert as_("rita").post(url, follow=True).redirect_chain == [(run, 302)]
    execution.refresh_from_db()
    assert (execution.status, execution.fence) == ("queued", 1)
    assert url not in read_page(as_("rita").get(run))
    assert as_("rita").post(url).status_code == 409
    executions.run_execution(execution.pk)
    assert len(worlds.effects()) == 1


def test_whose_decisions_are_stopped_tries_nothing_again(
    gate: Gate, as_: SignIn
) -> None:
    execution = states.failed(gate)
    stops.create_stop(
        scope=Scope.REVIEWER, key=gate.tom.public_id, person=gate.sue, reason="gone"
    )
    assert retry.find_retryable(gate.tom, [execution.pk], clock.now()) == set()
    assert retry.find_retryable(gate.rita, [execution.pk], clock.now()) == {
        execution.pk
    }
    assert as_("tom").post(f"/effects/{execution.pk}/retry/").status_code == 403
