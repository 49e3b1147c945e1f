"""The pages of standing alarms: who sees them, who answers, and what survives."""

from __future__ import annotations

import pytest
from guardian.shortcuts import remove_perm

from journal import errors, log
from reviews.alarms import standing, wording
from reviews.executions import redeem
from reviews.models import Alarm, Execution
from reviews.tool_services import executors
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.factories import decide, propose
from tests.markup import read_page, read_shown, read_text
from tests.reviews import states


@pytest.fixture
def alarm(gate: Gate) -> Alarm:
    """Approved, and its window went by."""
    return states.open_alarm(gate)


def test_the_list_says_what_it_means_and_where_to_go(
    gate: Gate, as_: SignIn, alarm: Alarm
) -> None:
    page = as_("sue").get("/alarms/")
    body = read_page(page)
    assert page.status_code == 200
    text = wording.describe_alarm(alarm.kind)
    assert all(part in read_text(page, "alarm") for part in text)
    assert alarm.proposal is not None
    assert f"/requests/{alarm.proposal.request.pk}/" in body
    assert "/threads/riley/t-1/" in body
    assert f"/log/?q={alarm.proposal_id}" in body


def test_the_navigation_counts_what_nobody_looks_at(
    gate: Gate, as_: SignIn, alarm: Alarm
) -> None:
    for name in ("sue", "adam", "otto"):
        page = as_(name).get("/help/")
        assert read_text(page, "badge-alarms") == "1", name
        assert "1 open" in read_page(page), name
    assert "badge-alarms" not in as_("rita").get("/help/").content.decode()
    standing.acknowledge_alarm(alarm_id=alarm.pk, person=gate.sue)
    assert read_text(as_("sam").get("/help/"), "badge-alarms") == ""


def test_filters_stand_in_the_address(gate: Gate, as_: SignIn, alarm: Alarm) -> None:
    client = as_("sue")
    assert alarm.queue is not None
    queue = alarm.queue.name
    for query, found in (
        (f"kind=never_executed&queue={queue}&state=open", True),
        ("kind=twice", False),
        ("queue=mail", False),
        ("state=closed", False),
        ("state=all", True),
        ("state=nonsense&kind=nonsense&before=x", True),
    ):
        body = client.get(f"/alarms/?{query}").content.decode()
        assert ('data-testid="alarm"' in body) is found, query
    standing.close_alarm(alarm_id=alarm.pk, person=gate.sue, note="asked again")
    assert 'data-testid="alarm"' not in client.get("/alarms/").content.decode()
    body = client.get("/alarms/?state=closed").content.decode()
    assert 'data-testid="alarm"' in body


def test_a_change_of_a_filter_brings_the_table_alone(
    gate: Gate, as_: SignIn, alarm: Alarm
) -> None:
    page = as_("sue", **HTMX).get("/alarms/?state=all")
    assert page.content.decode().lstrip().startswith('<div id="alarm-table"')


def test_a_supervisor_looks_at_it_and_closes_it_with_a_note(
    gate: Gate, as_: SignIn, alarm: Alarm
) -> None:
    client = as_("sue")
    url = f"/alarms/{alarm.pk}/"
    assert 'data-testid="acknowledge"' in read_page(client.get(url))
    assert 'data-testid="advice"' in read_page(client.get(url))
    done = client.post(f"{url}acknowledge/", follow=True)
    assert 'data-testid="message"' in read_page(done)
    assert 'data-testid="acknowledge"' not in read_page(done)
    assert "by Sue Example" in read_page(done)
    done = client.post(
        f"{url}close/", {"note": "asked again, <b>done</b>"}, follow=True
    )
    assert "by Sue Example: asked again, <b>done</b>" in read_text(done)
    assert "&lt;b&gt;done" in read_page(done)
    assert 'data-testid="close-alarm"' not in read_page(done)
    assert 'data-testid="advice"' not in read_page(done)
    assert read_text(done, "resolved") == "Resolved"
    alarm.refresh_from_db()
    assert (alarm.status, alarm.closed_how) == ("closed", "person")


def test_without_a_note_nothing_is_closed_and_what_was_typed_stays(
    gate: Gate, as_: SignIn, alarm: Alarm
) -> None:
    client = as_("sue")
    page = client.post(f"/alarms/{alarm.pk}/close/", {"note": "   "})
    assert page.status_code == 422
    assert 'id="note-error"' in read_page(page)
    long = "asked again " * 400
    page = client.post(f"/alarms/{alarm.pk}/close/", {"note": long})
    assert page.status_code == 422
    assert long.strip() in page.content.decode()
    alarm.refresh_from_db()
    assert alarm.status == "open"


def test_who_comes_second_is_told_so(gate: Gate, as_: SignIn, alarm: Alarm) -> None:
    standing.close_alarm(alarm_id=alarm.pk, person=gate.sam, note="asked again")
    client = as_("sue")
    assert client.post(f"/alarms/{alarm.pk}/acknowledge/").status_code == 409
    page = client.post(f"/alarms/{alarm.pk}/close/", {"note": "what <I> found"})
    assert page.status_code == 409
    assert "what &lt;I&gt; found" in page.content.decode()
    assert "asked again" in page.content.decode()


def test_what_came_since_is_not_closed_unread(
    gate: Gate, as_: SignIn, alarm: Alarm
) -> None:
    client, url = as_("sue"), f"/alarms/{alarm.pk}/"
    for change, said in (
        ({"times": 2}, "how often it was raised changed"),
        ({"data": {"code": "tried_out"}}, "its facts changed"),
    ):
        shown = read_shown(client.get(url))
        Alarm.objects.filter(pk=alarm.pk).update(**change)
        answer = client.post(f"{url}close/", {"note": "a <cause>", "shown": shown})
        assert answer.status_code == 409
        assert said in read_text(answer, "problem")
        assert "a &lt;cause&gt;" in read_page(answer)
    standing.acknowledge_alarm(alarm_id=alarm.pk, person=gate.sam)
    typed = {"note": "a cause", "shown": read_shown(answer)}
    answer = client.post(f"{url}close/", typed)
    assert "its status changed" in read_text(answer, "problem")
    typed["shown"] = read_shown(answer)
    assert client.post(f"{url}close/", typed).status_code == 302


@pytest.mark.parametrize("name", ["adam", "otto"])
def test_who_checks_reads_and_does_not_act(
    gate: Gate, as_: SignIn, alarm: Alarm, name: str
) -> None:
    client = as_(name)
    body = client.get(f"/alarms/{alarm.pk}/").content.decode()
    assert 'data-testid="close-alarm"' not in body
    assert 'data-testid="why-not"' in body
    for act, sent in (("acknowledge", {}), ("close", {"note": "mine"})):
        assert client.post(f"/alarms/{alarm.pk}/{act}/", sent).status_code == 403
    alarm.refresh_from_db()
    assert alarm.status == "open"


@pytest.mark.parametrize("name", ["rita", "owen"])
def test_to_others_it_is_not_there(
    gate: Gate, as_: SignIn, alarm: Alarm, name: str
) -> None:
    client = as_(name)
    assert client.get("/alarms/").status_code == 403
    assert client.get(f"/alarms/{alarm.pk}/").status_code == 404
    assert client.post(f"/alarms/{alarm.pk}/acknowledge/").status_code == 404
    assert client.post(f"/alarms/{alarm.pk}/close/", {"note": "x"}).status_code == 404


def test_a_supervisor_of_another_queue_is_not_concerned(
    gate: Gate, as_: SignIn, alarm: Alarm
) -> None:
    remove_perm("policies.decide", gate.sue, alarm.queue)
    client = as_("sue")
    assert 'data-testid="alarm"' not in client.get("/alarms/").content.decode()
    assert client.get(f"/alarms/{alarm.pk}/").status_code == 404


def test_reading_needs_reading_and_acting_needs_post(
    gate: Gate, as_: SignIn, alarm: Alarm
) -> None:
    client = as_("sue")
    assert client.post("/alarms/").status_code == 405
    assert client.post(f"/alarms/{alarm.pk}/").status_code == 405
    assert client.get(f"/alarms/{alarm.pk}/acknowledge/").status_code == 405
    assert client.get(f"/alarms/{alarm.pk}/close/").status_code == 405


def test_a_page_of_alarms_takes_as_many_queries_as_one(
    gate: Gate, as_: SignIn, alarm: Alarm, django_assert_max_num_queries
) -> None:
    for _ in range(3):
        states.lapsed_grant(gate)
    client = as_("sue")
    client.get("/alarms/")
    with django_assert_max_num_queries(12):
        body = client.get("/alarms/").content.decode()
    assert body.count('data-testid="alarm"') == 4


def test_what_an_agent_reports_is_inert(gate: Gate, as_: SignIn) -> None:
    hostile = "<script>alert(1)</script>\u202e[link](javascript:1)"
    request = propose(
        gate.agent, "write", args={"to": "a friend", "text": "hi"}
    ).request
    decide(request, gate.rita, reason_code="verified")
    execution = Execution.objects.select_related("grant").get()
    for said in (
        executors.build_success({hostile: hostile}),
        executors.build_unknown(hostile, hostile),
    ):
        with pytest.raises(errors.StaleFence):
            redeem.report_outcome(
                execution=execution,
                fence=1,
                action_hash=execution.grant.action_hash,
                outcome=said,
                actor=log.Actor("agent", "riley"),
            )
    body = as_("sue").get(f"/alarms/{Alarm.objects.get().pk}/").content.decode()
    assert "<script>alert" not in body
    assert "\u202e" not in body
    assert body.count("alert(1)") == 4
