"""Stop and its lifting, and the settling of unknown outcomes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from guardian.shortcuts import remove_perm

from journal import clock, log
from journal.models import LogRecord
from policies.models import Queue
from reviews.administration import accounts
from reviews.choices import (
    STOP_REASON_LABELS,
    ExecutionStatus,
    Scope,
    StopMode,
    StopReason,
)
from reviews.executions import claims, settle
from reviews.executions import record as executions
from reviews.executions import run as executions_run
from reviews.models import Execution, Stop
from reviews.requests import proposals
from reviews.stops import stops
from reviews.tool_services.executors import build_success
from tests import factories
from tests.conftest import ROOT, Gate
from tests.desk.conftest import SignIn
from tests.factories import decide, propose
from tests.markup import read_page, read_text
from tests.reviews import states
from tests.reviews.executions.attempts import ends, granted

RUN = "/stop/?agent=riley&thread=t-1"


def stopping(scope: str, key: str = "", mode: str = "stopped") -> dict[str, str]:
    said = {"target": f"{scope}:{key}", "mode": mode, "reason": "runs wild"}
    return said | ({"sure": "All agents"} if scope == "everything" else {})


def find_main(response: Any) -> str:
    """The page without the navigation."""
    return read_page(response).split("<main", 1)[1]


def targets(source: str) -> str:
    """The radio buttons of what is to be stopped."""
    return "".join(re.findall(r'<input[^>]*name="target"[^>]*>', source))


def test_a_supervisor_stops_a_run(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    client = as_("sue")
    assert "1 pending request" in read_text(client.get(RUN), "load-thread:riley/t-1")
    response = client.post(RUN, stopping("thread", "riley/t-1"), follow=True)
    source = read_page(response)
    assert 'data-state="stopping"' in source
    figures = read_text(response, "figures")
    assert "1 pending request still to withdraw" in figures
    assert "Run riley/t-1" in source
    assert (Stop.objects.get().scope, Stop.objects.get().mode) == ("thread", "stopped")


def test_the_stop_page_leads_back_to_where_it_was_opened(
    gate: Gate, as_: SignIn
) -> None:
    propose(gate.agent)
    client, stop = as_("sue"), "/threads/riley/t-1/stop/"

    def way_back(referer: str, **sent: str) -> str:
        ask = client.post if sent else client.get
        answer = ask(stop, sent or None, headers={"referer": referer})
        found = re.search(r'href="([^"]*)" data-key="Escape"', read_page(answer))
        assert found
        return found[1]

    own = "http://testserver"
    assert way_back(f"{own}/queue/?risk=high") == "/queue/?risk=high"
    assert way_back(own + stop, back="/queue/") == "/queue/"
    for other in ("https://evil.example/queue/", f"{own}//evil.example/", own + stop):
        assert way_back(other) == "/"
    assert way_back("", back="javascript:alert(1)") == "/"


def test_it_says_halted_only_when_nothing_runs(gate: Gate, as_: SignIn) -> None:
    execution = states.claimed(gate)
    key = stops.build_thread_key("riley", execution.proposal.thread)
    stops.create_stop(scope=Scope.THREAD, key=key, person=gate.sue, reason="x")
    assert "1 still running" in read_text(as_("sue").get("/stop/"), "switch-state")
    Execution.objects.filter(pk=execution.pk).update(
        status=ExecutionStatus.UNKNOWN, lease_until=None
    )
    assert read_text(as_("sue").get("/stop/"), "switch-state") == "Stopped"


def test_a_reason_is_needed_and_the_choice_is_kept(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    sent = stopping("agent", "riley", "paused") | {"reason": " "}
    response = as_("sue").post(RUN, sent)
    source = read_page(response)
    assert response.status_code == 422
    assert 'id="problem"' in source
    assert 'value="agent:riley" checked' in source
    assert not Stop.objects.exists()


def test_who_comes_second_keeps_their_words(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    row = stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sam, reason="x")
    said = stopping("agent", "riley") | {"reason": "it loops again"}
    page = as_("sue").post("/stop/?agent=riley", said)
    assert page.status_code == 409
    assert 'data-testid="problem"' in read_page(page)
    assert "it loops again" in read_page(page)
    assert " checked" not in targets(read_page(page))
    stops.lift_stop(stop_id=row.pk, person=gate.sam, reason="over")
    page = as_("sue").post(f"/stop/{row.pk}/lift/", {"reason": "all is well"})
    assert page.status_code == 409
    assert "all is well" in read_page(page)


def test_from_any_page_runs_and_tools_at_work_are_two_clicks_away(
    gate: Gate, as_: SignIn
) -> None:
    propose(gate.agent, "pay", thread="t-7")
    states.queued(gate, "pay_queryable")
    run, tool = "/threads/riley/t-7/stop/", "/stop/?tool=pay"
    source = read_page(as_("sue").get("/stop/"))
    assert f'href="{run}"' in source
    assert f'href="{tool}"' in source
    assert 'href="/stop/?tool=pay_queryable"' in source
    said = stopping("thread", "riley/t-7")
    assert as_("sue").post(run, said).status_code == 302
    assert as_("sue").post(tool, stopping("tool", "pay")).status_code == 302
    source = read_page(as_("rita").get("/stop/"))
    assert f'href="{run}"' in source
    assert tool not in source
    assert run not in read_page(as_("otto").get("/stop/"))


def test_a_list_that_is_cut_says_how_many_more_and_leads_to_them(
    gate: Gate, as_: SignIn
) -> None:
    for number in range(21):
        propose(gate.agent, thread=f"t-{number}")
    for name in ("sue", "rita"):
        client = as_(name)
        first = client.get("/stop/")
        assert read_page(first).count("/threads/riley/t-") == 8
        assert read_text(first, "more-at-work") == "13 more runs …"
        assert 'href="/stop/?all"' in read_page(first)
        whole = read_page(client.get("/stop/?all"))
        assert whole.count("/threads/riley/t-") == 21
        assert "more-at-work" not in whole


def test_agents_that_are_cut_are_counted_and_listed(gate: Gate, as_: SignIn) -> None:
    for number in range(14):
        propose(factories.agent(gate.owen, f"bot-{number}"), thread="t-1")
    client = as_("sue")
    # Riley, with nothing at work, stands last.
    assert read_text(client.get("/stop/"), "more-agents") == "3 more agents…"
    whole = read_page(client.get("/stop/?all"))
    offered = re.findall('value="agent:([^"]+)"', whole)
    assert (len(offered), offered[-1]) == (15, "riley")
    assert not re.search('value="agent:[^"]+"\\s+checked', whole)


def test_what_is_at_work_stands_newest_first_whatever_it_waits_for(
    gate: Gate, as_: SignIn
) -> None:
    for number in range(8):
        granted(gate, "pay_queryable", thread=f"old-{number}")
    propose(gate.agent, thread="waits")
    source = read_page(as_("rita").get("/stop/"))
    runs = re.findall(r'href="/threads/riley/([^/]+)/stop/"', source)
    assert runs == ["waits", *(f"old-{number}" for number in range(7, 0, -1))]


def test_an_owner_is_led_to_the_runs_of_their_own_agents(
    gate: Gate, as_: SignIn
) -> None:
    propose(gate.agent, thread="t-7")
    run = "/threads/riley/t-7/stop/"
    assert f'href="{run}"' in read_page(as_("owen").get("/stop/"))
    said = stopping("thread", "riley/t-7")
    assert as_("owen").post(run, said).status_code == 302
    gate.people["olga"] = factories.person("olga", factories.CAST["owen"])
    other = read_page(as_("olga").get("/stop/"))
    assert run not in other


def test_a_reviewer_is_offered_a_pause_and_no_more(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    client = as_("rita")
    source = read_page(client.get(RUN))
    assert 'value="paused"' in source
    assert 'value="stopped"' not in source
    assert 'value="agent:riley"' not in source
    assert client.post(RUN, stopping("thread", "riley/t-1")).status_code == 403
    assert (
        client.post(RUN, stopping("thread", "riley/t-1", "paused")).status_code == 302
    )


def test_a_preset_is_reason_enough_and_other_is_not(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    sent = stopping("agent", "riley") | {"reason": "", "reason_code": "other"}
    response = as_("sue").post(RUN, sent)
    assert response.status_code == 422
    assert 'id="reason-error"' in read_page(response)
    as_("sue").post(RUN, sent | {"reason_code": "runaway"})
    said = STOP_REASON_LABELS[StopReason.RUNAWAY]
    assert Stop.objects.get().reason == f"{said}."
    record = LogRecord.objects.get(kind="stop.raised")
    assert json.loads(bytes(record.leaf))["data"]["reason_code"] == "runaway"


def test_a_link_may_ask_for_a_pause(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    source = read_page(as_("sue").get("/threads/riley/t-1/stop/?mode=paused"))
    assert 'value="paused" checked' in source
    assert 'value="thread:riley/t-1" checked' in source


def test_the_escalation_links_to_the_pause(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate", reason_code="unsafe")
    source = read_page(as_("sue").get(f"/escalations/{request.pk}/"))
    assert 'href="/threads/riley/t-1/stop/?mode=paused"' in source


def test_from_any_page_every_agent_is_offered_those_at_work_first(
    gate: Gate, as_: SignIn
) -> None:
    robin = factories.agent(gate.owen, "robin")
    client = as_("sue")
    for agents in (["riley", "robin"], ["robin", "riley"]):
        source = read_page(client.get("/stop/"))
        assert re.findall('value="agent:([^"]+)"', source) == agents
        propose(robin)
    assert client.post("/stop/", stopping("agent", "robin")).status_code == 302
    assert Stop.objects.get().key == "robin"
    assert 'value="agent:riley"' not in read_page(as_("rita").get("/stop/"))


def test_every_action_says_what_becomes_of_it(gate: Gate, as_: SignIn) -> None:
    states.claimed(gate)
    states.queued(gate, "pay_queryable")
    propose(gate.agent, customer="C-7")
    page = as_("sue").get(RUN)
    source = read_page(page)
    load = read_text(page, "load-agent:riley")
    for kind in ("1 queued: ", "1 running: "):
        assert load.count(kind) == 2, kind  # for a stop and for a pause
    assert source.count('data-fate="running"') == 1
    assert source.count('data-fate="queued"') == 1


def test_the_list_is_live_until_nothing_runs(gate: Gate, as_: SignIn) -> None:
    execution = states.claimed(gate)
    row = stops.create_stop(
        scope=Scope.AGENT, key="riley", person=gate.sue, reason="x", reason_code="harm"
    )
    client = as_("sue")
    url = f"/stop/{row.pk}/live/"
    assert url in read_page(client.get(f"/stop/{row.pk}/"))
    first = client.get(url, HTTP_HX_REQUEST="true")
    assert first.status_code == 200
    again = client.get(url, HTTP_IF_NONE_MATCH=first["ETag"], HTTP_HX_REQUEST="true")
    assert again.status_code == 204
    executions_run.run_execution(execution.pk)
    Execution.objects.filter(pk=execution.pk).update(
        status=ExecutionStatus.SUCCEEDED, lease_until=None, finished_at=clock.now()
    )
    last = client.get(url, HTTP_IF_NONE_MATCH=first["ETag"], HTTP_HX_REQUEST="true")
    assert last.status_code == 286
    source = read_page(last)
    said = "nothing to cancel, 1 had already started and finished."
    assert read_text(last, "figures") == said.capitalize()
    assert 'data-state="stopped"' in source
    assert f": {said}" in re.findall(r'data-say="([^"]+)"', source)[0]


def test_a_switch_is_read_by_whom_it_concerns(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    row = stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="x")
    for queue in Queue.objects.all():
        remove_perm("policies.decide", gate.rita, queue)
    for path in (f"/stop/{row.pk}/", f"/stop/{row.pk}/live/"):
        assert as_("rita").get(path).status_code == 404
        assert as_("owen").get(path).status_code == 200
        assert as_("sue").post(path).status_code == 405
    assert as_("sue").get("/stop/9999/").status_code == 404


def test_only_administrators_stop_everything(gate: Gate, as_: SignIn) -> None:
    unsure = stopping("everything") | {"sure": "all"}
    assert as_("adam").post("/stop/", unsure).status_code == 422
    assert not Stop.objects.exists()
    assert as_("sue").post("/stop/", stopping("everything")).status_code == 403
    assert 'value="everything:"' in read_page(as_("adam").get("/stop/"))
    assert as_("adam").post("/stop/", stopping("everything")).status_code == 302


def test_a_foolish_target_is_refused(gate: Gate, as_: SignIn) -> None:
    assert as_("adam").post("/stop/", stopping("galaxy", "x")).status_code == 422


def test_lifting_takes_a_reason_and_for_everything_two_people(
    gate: Gate, as_: SignIn
) -> None:
    row = stops.create_stop(
        scope=Scope.EVERYTHING, person=gate.adam, mode=StopMode.PAUSED, reason="x"
    )
    lifted = Stop.objects.filter(pk=row.pk, lifted_at__isnull=False)
    url = f"/stop/{row.pk}/lift/"
    assert as_("sue").post(url, {"reason": ""}).status_code == 422
    first = as_("sue").post(url, {"reason": "fixed"}, follow=True)
    assert read_text(first, "message")
    assert not lifted.exists()
    assert as_("sue").post(url, {"reason": "fixed"}).status_code == 403
    second = as_("sam").post(url, {"reason": "fixed"}, follow=True)
    assert read_text(second, "message")
    assert lifted.exists()
    assert as_("rita").post(url, {"reason": "fixed"}).status_code in {403, 404}
    assert as_("sue").get(url).status_code == 405


def test_who_read_that_nobody_asked_is_not_the_second_to_lift(
    gate: Gate, as_: SignIn
) -> None:
    row = stops.create_stop(
        scope=Scope.EVERYTHING, person=gate.adam, mode=StopMode.PAUSED, reason="x"
    )
    url = f"/stop/{row.pk}/lift/"
    assert 'name="asked" value="0"' in read_page(as_("sam").get(f"/stop/{row.pk}/"))
    as_("sue").post(url, {"reason": "fixed", "asked": "0"})
    answer = as_("sam").post(url, {"reason": "fixed too", "asked": "0"})
    assert answer.status_code == 409
    page = read_page(answer)
    assert "Somebody else has asked to resume this" in page
    assert 'name="asked" value="1"' in page
    assert not Stop.objects.filter(lifted_at__isnull=False).exists()
    as_("sam").post(url, {"reason": "read", "asked": "1"})
    assert Stop.objects.filter(lifted_at__isnull=False).exists()


def test_the_queue_says_that_something_is_unknown(gate: Gate, as_: SignIn) -> None:
    states.unknown(gate)
    link = 'href="/unknown/"'
    assert link in find_main(as_("sue").get("/queue/"))
    assert link not in find_main(as_("rita").get("/queue/"))


def test_a_tool_is_stopped_from_the_pages_that_name_it(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    client = as_("sue")
    source = read_page(client.get(f"/requests/{request.pk}/"))
    assert 'href="/threads/riley/t-1/stop/?tool=pay"' in source
    policy = read_page(client.get(f"/policies/{gate.policy.number}/"))
    assert 'href="/stop/?tool=pay"' in policy
    assert 'href="/stop/?tool=pay"' in read_page(client.get("/agents/riley/"))
    assert "/stop/?tool=" not in read_page(as_("rita").get("/policies/1/"))
    page = read_page(client.get("/threads/riley/t-1/stop/?tool=pay"))
    for target in ("thread:riley/t-1", "agent:riley", "tool:pay"):
        assert f'value="{target}"' in page
    sent = stopping("tool", "pay")
    response = client.post("/threads/riley/t-1/stop/?tool=pay", sent)
    assert response.status_code == 302
    assert (Stop.objects.get().scope, Stop.objects.get().key) == ("tool", "pay")


def test_the_owner_stops_a_run_and_no_tool(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    path = "/threads/riley/t-1/stop/?tool=pay"
    assert 'value="tool:pay"' not in read_page(as_("owen").get(path))
    assert as_("owen").post(path, stopping("tool", "pay")).status_code == 403


def test_it_says_what_had_finished_before_and_that_it_was_sent(
    gate: Gate, as_: SignIn
) -> None:
    states.succeeded(gate)
    row = stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="x")
    page = as_("sue").get(f"/stop/{row.pk}/")
    assert read_text(page, "before").startswith("1 ")
    assert 'data-fate="before"' in read_page(page)
    assert read_text(page, "figures") == "Nothing to cancel."


@pytest.mark.parametrize("ran", [False, True])
def test_it_tells_of_what_was_unknown_once_and_was_tried_again(
    gate: Gate, as_: SignIn, ran: bool
) -> None:
    execution = states.unknown(gate)
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=False, reason="not there"
    )
    settle.retry_execution(execution_id=execution.pk, person=gate.sam)
    claim = (
        claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
        if ran
        else None
    )
    row = stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="x")
    if claim is None:
        proposals.withdraw_stopped_proposal(
            proposal_id=execution.proposal_id, code="stopped"
        )
    else:
        executions.record_outcome(
            execution_id=execution.pk,
            fence=claim.fence,
            outcome=build_success({}),
            actor=log.SYSTEM,
        )
    source = read_page(as_("sue").get(f"/stop/{row.pk}/"))
    fate = "finished" if ran else "cancelled"
    assert f'data-fate="{fate}"' in source


def test_what_became_known_after_the_stop_had_happened_before(
    gate: Gate, as_: SignIn
) -> None:
    execution = states.unknown(gate)
    row = stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="x")
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=True, reason="the books"
    )
    page = as_("sue").get(f"/stop/{row.pk}/")
    assert 'data-fate="finished"' not in read_page(page)
    assert read_text(page, "before").startswith("1 ")
    assert 'data-fate="before"' in read_page(page)


def test_a_pause_says_what_ran_out_of_time_under_it(gate: Gate, as_: SignIn) -> None:
    execution = states.queued(gate)
    row = stops.create_stop(
        scope=Scope.AGENT,
        key="riley",
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="look",
    )
    ends(execution, "window")
    executions_run.run_execution(execution.pk)
    page = as_("sue").get(f"/stop/{row.pk}/")
    assert read_text(page, "figures") == "Nothing was cancelled, 1 ran out of time."
    assert 'data-fate="cancelled"' not in read_page(page)
    log_page = read_page(as_("otto").get("/log/?kind=stop.raised"))
    assert "paused agent" in re.sub(r"<[^>]+>", "", log_page)


def test_who_may_only_pause_is_not_offered_what_is_paused(
    gate: Gate, as_: SignIn
) -> None:
    propose(gate.agent)
    client = as_("rita")
    client.post(RUN, stopping("thread", "riley/t-1", "paused"))
    (only,) = re.findall(r'<input[^>]*name="target"[^>]*>', read_page(client.get(RUN)))
    assert "disabled" in only
    assert "checked" not in only


def test_nobody_is_offered_to_lift_what_is_over_themselves(
    gate: Gate, as_: SignIn
) -> None:
    key = gate.sam.public_id
    row = stops.create_stop(scope=Scope.REVIEWER, key=key, person=gate.sue, reason="x")
    for name, offered in (("sam", False), ("sue", True)):
        source = read_page(as_(name).get(f"/stop/{row.pk}/"))
        assert ('data-testid="lift"' in source) == offered, name


def test_it_says_who_asked_and_that_they_cannot_confirm(
    gate: Gate, as_: SignIn
) -> None:
    row = stops.create_stop(scope=Scope.EVERYTHING, person=gate.adam, reason="x")
    assert read_text(as_("sue").get(f"/stop/{row.pk}/"), "first-of-two")
    stops.lift_stop(stop_id=row.pk, person=gate.sue, reason="fixed")
    mine = as_("sue").get(f"/stop/{row.pk}/")
    asked = read_text(mine, "lift-asked")
    assert asked.startswith("Sue Example ")
    assert "not you" in asked
    assert 'data-testid="lift"' not in read_page(mine)
    others = as_("alma").get(f"/stop/{row.pk}/")
    assert read_text(others, "second-of-two")
    assert "not you" not in read_text(others, "lift-asked")


def test_the_key_of_a_run_is_an_address_of_its_stop(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    client = as_("sue")
    by_key = client.get("/stop/?thread=riley/t-1")
    assert targets(read_page(by_key)) == targets(read_page(client.get(RUN)))
    assert 'value="thread:riley/t-1" checked' in read_page(by_key)
    assert as_("rita").get("/stop/?thread=robin/t-1").status_code == 404
    for nothing in ("t-1", "riley/", "/"):
        answer = client.get("/stop/", {"thread": nothing})
        assert answer.status_code == 404
        assert "names a run without its agent" in read_page(answer)


def test_an_owner_is_told_who_may_resume(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    row = stops.create_stop(
        scope=Scope.AGENT,
        key="riley",
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="x",
    )
    said = "A supervisor or an administrator can resume it."
    for path in (f"/stop/{row.pk}/", "/stop/"):
        assert read_text(as_("owen").get(path), "resumed-by") == said
        assert 'data-testid="resumed-by"' not in read_page(as_("sue").get(path))
    page = find_main(as_("owen").get(f"/stop/{row.pk}/"))
    assert "until a supervisor or an administrator resumes it" in page
    whole = stops.create_stop(
        scope=Scope.EVERYTHING, key="", person=gate.adam, reason="x"
    )
    said = "Two supervisors or administrators can resume it together."
    assert read_text(as_("owen").get(f"/stop/{whole.pk}/"), "resumed-by") == said


def test_what_is_paused_stands_above_the_form(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    client = as_("sue")
    source = find_main(client.get("/stop/"))
    assert source.index("stop-form") < source.index("nothing-off")
    stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="x")
    source = find_main(client.get("/stop/"))
    assert source.count('data-testid="lift"') == 1
    assert source.index('data-testid="lift"') < source.index("stop-form")


def test_an_empty_reason_to_resume_is_answered_at_its_field(
    gate: Gate, as_: SignIn
) -> None:
    propose(gate.agent)
    row = stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="x")
    client = as_("sue")
    (field,) = re.findall("<textarea[^>]*>", find_main(client.get(f"/stop/{row.pk}/")))
    assert " required" not in field
    page = client.post(f"/stop/{row.pk}/lift/", {"reason": " "})
    assert page.status_code == 422
    (field,) = re.findall("<textarea[^>]*>", find_main(page))
    assert 'aria-describedby="lift-error"' in field
    assert 'id="lift-error"' in find_main(page)


def test_no_reason_is_left_to_the_browsers_own_words() -> None:
    """Each has an error of ours at its field, which a browser's bubble would hide."""
    notes = {
        "desk/request/_unsent_text.html",
        "desk/request/_message.html",
    }  # the last is never checked
    for template in sorted((ROOT / "templates").rglob("*.html")):
        if str(template.relative_to(ROOT / "templates")) in notes:
            continue
        for field in re.findall(r"<textarea[^>]*>", template.read_text()):
            wants = re.search(r'name="(reason|answer|guidance|text)"', field)
            assert not (wants and re.search(r"\srequired\b", field)), template


def test_an_account_that_is_active_again_says_that_its_decisions_are_stopped(
    gate: Gate, as_: SignIn
) -> None:
    accounts.deactivate_account(person=gate.rita, by=gate.adam)
    row = Stop.objects.get(scope=Scope.REVIEWER)
    page = read_page(as_("sue").get(f"/stop/{row.pk}/"))
    assert "Reactivating their account does not resume them." in page
    accounts.reactivate_account(person=gate.rita, by=gate.adam)
    said = "You cannot decide until a supervisor or an administrator resumes your"
    gate.rita.refresh_from_db()
    assert said in read_text(as_("rita").get("/queue/"), "switched")
    for name in ("tom", "sue"):
        assert 'data-testid="switched"' not in read_page(as_(name).get("/queue/"))
    stops.lift_stop(stop_id=row.pk, person=gate.sue, reason="back")
    assert 'data-testid="switched"' not in read_page(as_("rita").get("/queue/"))
