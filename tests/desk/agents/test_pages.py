"""What an agent's page and a run's page are made of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from agents.models import Thread
from desk.agents import agents, run_summaries, threads
from desk.agents.agents import AgentPage
from desk.agents.threads import PlanStep, StateCell, ThreadPage
from desk.components import visibility
from journal import clock
from reviews.choices import Scope, StopMode
from reviews.evidence import reveals
from reviews.executions import claims, settle
from reviews.executions import run as executions
from reviews.models import Execution, Proposal
from reviews.stops import stops
from tests import factories, worlds
from tests.conftest import Gate
from tests.desk.components.test_visibility import fresh
from tests.factories import decide, propose
from tests.markup import find_element, read_page
from tests.reviews import states
from tests.reviews.executions import attempts

RUN = "/threads/riley/t-1/"


def agent_page(gate: Gate, name: str = "sue") -> AgentPage:
    return agents.build_agent_page(fresh(gate.people[name]), "riley", clock.now())


def run_page(gate: Gate, name: str = "sue", run: str = "t-1") -> ThreadPage:
    return threads.build_thread_page(
        fresh(gate.people[name]), "riley", run, clock.now()
    )


def source(gate: Gate, name: str, path: str = RUN) -> str:
    client = Client()
    client.force_login(gate.people[name], "django.contrib.auth.backends.ModelBackend")
    return read_page(client.get(path))


def test_only_what_waits_or_was_done_within_a_day_goes_on(gate: Gate) -> None:
    """An agent that never says that its runs are over."""
    propose(gate.agent, thread="waits")
    for number in range(3):
        request = propose(gate.agent, customer=f"C-{number}", thread=f"t-{number}")
        decide(request.request, gate.rita, "reject")
    page = agent_page(gate)
    assert sorted(run.thread.name for run in page.live) == [
        "t-0",
        "t-1",
        "t-2",
        "waits",
    ]
    assert (page.rest, page.rest_count) == ([], 0)
    late = clock.now() + timedelta(hours=25)
    page = agents.build_agent_page(fresh(gate.sue), "riley", late)
    assert [run.thread.name for run in page.live] == ["waits"]
    assert [(run.thread.name, run.icon) for run in page.rest] == [
        (f"t-{number}", "wait") for number in (2, 1, 0)
    ]
    run = threads.build_thread_page(fresh(gate.sue), "riley", "t-1", late)
    assert run.icon == "wait"
    assert run_page(gate, run="t-1").state.startswith("Idle since ")


def test_the_newest_ten_go_on_at_once_and_the_rest_on_demand(gate: Gate) -> None:
    for number in range(13):
        propose(gate.agent, customer=f"C-{number}", thread=f"t-{number}")
    page = agent_page(gate)
    assert [run.thread.name for run in page.live] == [
        f"t-{n}" for n in range(12, 2, -1)
    ]
    assert [run.thread.name for run in page.rest] == ["t-2", "t-1", "t-0"]
    assert page.rest_count == 3
    shown = source(gate, "sue", "/agents/riley/")
    folded = shown.index('data-testid="more-runs"')
    assert shown.index("/threads/riley/t-3/") < folded
    assert folded < shown.index("/threads/riley/t-2/")


def test_an_agent_shows_what_the_registry_has(gate: Gate) -> None:
    propose(gate.agent)
    gate.agent.tools = ["pay", "never_heard_of"]
    gate.agent.save()
    page = agent_page(gate)
    assert [(one.name, one.version) for one in page.tools] == [
        ("never_heard_of", None),
        ("pay", 1),
    ]
    assert (page.limits.waiting, page.limits.this_minute) == (1, 1)
    assert (page.limits.may_wait, page.limits.a_minute) == (1000, 600)
    shown = source(gate, "sue", "/agents/riley/")
    limit = find_element(shown, "pending-limit")
    assert "1 of 1000" in limit
    assert shown.count('data-testid="tool-unknown"') == 1


def test_what_went_wrong_is_counted_and_told(gate: Gate) -> None:
    states.failed(gate)
    states.unknown(gate)
    states.rejected(gate)
    propose(gate.agent, "nothing_like_it", args={})
    executions.run_execution(
        propose(gate.agent, "look").executions.get().pk
    )  # went well
    page = agent_page(gate)
    assert dict(page.history.figures) == {
        run_summaries.PROBLEM_WORDS["failed"]: 1,
        run_summaries.PROBLEM_WORDS["unknown"]: 1,
        run_summaries.PROBLEM_WORDS["rejected"]: 1,
        run_summaries.PROBLEM_WORDS["blocked"]: 1,
    }
    assert page.history.is_all
    whys = {step.state.key: step.why for step in page.history.newest}
    assert whys["rejected"] == "Not needed"
    assert whys["failed"] == ""  # in the tool's own word, which is no word of ours
    notes = {step.state.key: step.note for step in page.history.newest}
    assert notes["failed"]
    assert whys["blocked"] == "This tool is not registered."


def test_a_near_miss_is_on_record_although_all_went_well(gate: Gate) -> None:
    execution = propose(gate.agent, "tag").executions.get()
    executions.run_execution(execution.pk)
    assert (
        agents.build_history(gate.sue, Proposal.objects.all(), clock.now()).newest == []
    )
    found = Execution.objects.select_related("proposal").get()
    reveals.record_sightings(person=gate.rita, executions=[found], near_miss=True)
    lately = agents.build_history(
        gate.sue, visibility.select_visible_proposals(gate.sue), clock.now()
    )
    assert (lately.near_misses, len(lately.newest)) == (1, 1)
    shown = source(gate, "sue", "/agents/riley/")
    assert ">1 near miss<" in find_element(shown, "near-misses")


def test_runs_that_go_on_stand_before_those_that_are_over(gate: Gate) -> None:
    states.finished(gate)
    propose(gate.agent, thread="t-2")
    page = agent_page(gate)
    assert [(run.thread.name, run.word) for run in page.live] == [("t-2", "1 pending")]
    assert [run.word for run in page.past] == ["Completed"]
    stops.create_stop(scope=Scope.THREAD, key="riley/t-2", person=gate.sue, reason="x")
    assert [run.word for run in agent_page(gate).live] == ["Stopped"]
    assert not run_page(gate, run="t-2").may_stop
    propose(gate.agent, thread="t-3")
    stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="x")
    assert run_page(gate, run="t-3").may_stop


def test_each_step_says_once_who_was_asked(gate: Gate) -> None:
    propose(gate.agent, "look")
    propose(gate.agent, "tag")
    decide(propose(gate.agent).request, gate.rita, "reject")
    propose(gate.agent, "nothing_like_it", args={})
    steps = run_page(gate).steps
    assert [(step.approval, step.way) for step in steps] == [
        ("Blocked", ""),
        ("Approval", ""),
        ("Notify only", "Listed in Activity"),
        ("No approval", ""),
    ]
    assert [step.took is not None for step in steps] == [False, True, False, False]
    assert steps[1].why == "Not needed"


def test_the_first_line_is_that_it_waits_for_who_looks(gate: Gate) -> None:
    request = propose(gate.agent).request
    shown = source(gate, "rita")
    assert shown.index('data-testid="asks-you"') < shown.index("<h1")
    assert len(run_page(gate, "rita").asks) == 1
    other = propose(gate.agent, "write").request
    asks = find_element(source(gate, "rita"), "asks-you")
    assert len(run_page(gate, "rita").asks) == 2
    assert (request.pk in asks, other.pk in asks) == (True, False), (
        "the first to expire"
    )
    assert 'data-testid="asks-you"' not in source(gate, "otto")
    assert run_page(gate, "otto").state == "Waiting for approval, 2 pending"


def test_what_is_tried_again_says_which_attempt_and_when(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "failing", attempts.flaky)
    execution = attempts.granted(gate, "decline")
    assert run_page(gate).actions[0].attempt == ""
    executions.run_execution(execution.pk)
    execution.refresh_from_db()
    due = f"{execution.due_at:%H:%M:%S} UTC"
    assert run_page(gate).actions[0].attempt == f"Attempt 2 of 3, next at {due}"
    assert f"attempt 2 of 3, next at {due}<" in source(gate, "sue")
    (step,) = run_page(gate).steps
    assert (step.why, step.note) == ("", "busy: ask me later"), "its service's words"
    Execution.objects.filter(pk=execution.pk).update(due_at=clock.now())
    claims.claim_execution(execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR)
    assert run_page(gate).actions[0].attempt == "Attempt 2 of 3"


def test_an_attempt_that_a_person_asked_for_is_one_more(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "failing", attempts.flaky)
    execution = attempts.granted(gate, "decline")
    for _ in range(3):
        Execution.objects.filter(pk=execution.pk).update(due_at=clock.now())
        executions.run_execution(execution.pk)
    settle.retry_execution(execution_id=execution.pk, person=gate.rita)
    assert run_page(gate).actions[0].attempt.startswith("Attempt 4, next at ")


def test_what_was_used_is_counted_by_us(gate: Gate) -> None:
    executions.run_execution(states.queued(gate).pk)
    propose(gate.agent, customer="C-7", amount="7.50")
    used = run_page(gate).used
    assert used.proposals == 2
    assert dict(used.outcomes) == {"executed": 1, "pending": 1}
    assert used.money == [("40.00 USD", threads.MONEY_WORDS["executed"])]


def test_what_is_under_way_is_said(gate: Gate) -> None:
    states.claimed(gate)
    states.queued(gate, "pay_queryable")
    page = run_page(gate)
    assert [one.running for one in page.actions] == [True, False]
    shown = find_element(source(gate, "sue"), "in-flight")
    assert shown.count("<li") == 2
    assert "running since" in shown


def test_what_holds_a_run_back_stands_above_it(gate: Gate) -> None:
    propose(gate.agent)
    row = stops.create_stop(
        scope=Scope.AGENT,
        key="riley",
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="Odd mails.",
    )
    assert run_page(gate).state == "Paused"
    for path in (RUN, "/agents/riley/"):
        shown = source(gate, "sam", path)
        held = find_element(shown, "held-back")
        assert "riley" in held
        assert "paused since" in held
        assert "Odd mails." in held
        assert f'href="/stop/{row.pk}/"' in held
        assert 'data-testid="resume"' in held
        assert 'data-testid="resume"' not in source(gate, "owen", path)


def test_runs_know_what_they_started_and_are_part_of(gate: Gate) -> None:
    robin = factories.agent(gate.owen, "robin")
    parent = propose(gate.agent)
    propose(robin, thread="s-1", parent=parent.pk)
    propose(robin, "write", thread="s-1", parent=parent.pk)
    propose(gate.agent, "look", parent=parent.pk)  # of the run itself: no child
    (child,) = run_page(gate).children
    assert (child.agent, child.thread, child.proposals) == ("robin", "s-1", 2)
    assert "/threads/robin/s-1/" in find_element(source(gate, "sue"), "children")
    (above,) = threads.list_parent_runs(gate.sue, "robin", "s-1")
    assert (above.agent, above.thread) == ("riley", "t-1")
    shown = source(gate, "sue", "/threads/robin/s-1/")
    assert "riley, run t-1" in find_element(shown, "parents")


def test_a_child_that_is_not_the_readers_is_not_named(gate: Gate) -> None:
    olga = factories.person("olga", factories.CAST["owen"])
    parent = propose(gate.agent)
    propose(factories.agent(olga, "robin"), thread="s-1", parent=parent.pk)
    assert threads.list_child_runs(fresh(gate.owen), "riley", "t-1") == []


def test_goal_plan_and_budget_are_set_apart_and_fenced(gate: Gate) -> None:
    state = {
        "goal": "Refund it <b>now</b>",
        "plan": [{"step": "look", "state": "done"}, {"step": "pay", "state": "next"}],
        "budget": {"tokens": 1200, "of": 5000},
        "tries": 2,
    }
    propose(gate.agent, checkpoint={"state": state})
    shown = source(gate, "sue")
    told = find_element(shown, "told")
    assert "Refund it &lt;b&gt;now" in told
    assert "said-by" in told
    for said in ("look", "next", "tokens", "1200"):
        assert said in told
    assert "tries" not in told


@pytest.mark.parametrize(
    "state",
    [
        {"goal": ["a", "b"]},
        {"plan": "do it"},
        {"plan": [{"step": "a", "owner": "b"}]},
        {"plan": [["a"]]},
        {"budget": 3},
    ],
)
def test_what_has_another_shape_stays_in_the_table(state) -> None:
    told = threads.build_agent_state(state)
    assert not told.any
    assert told.cells


def test_the_state_is_typed_and_never_json() -> None:
    state: dict[str, Any] = {
        "a": {"b": [1, True]},
        "c": None,
        "d": "x",
        "e": [],
        "f": 1.5,
    }
    assert threads.build_agent_state(state).cells == [
        StateCell("a.b 1", "number", "1"),
        StateCell("a.b 2", "yes or no", "yes"),
        StateCell("c", "nothing", "none"),
        StateCell("d", "text", "x"),
        StateCell("e", "list", "none"),
        StateCell("f", "number", "1.5"),
    ]


def test_a_long_state_says_how_much_is_left_out() -> None:
    told = threads.build_agent_state({f"n{number}": number for number in range(230)})
    assert (len(told.cells), told.more) == (200, 30)


def test_a_plan_of_sentences_is_one(gate: Gate) -> None:
    assert threads.build_agent_state({"plan": ["look", "pay"]}).plan == [
        PlanStep("look"),
        PlanStep("pay"),
    ]


def test_a_run_without_a_checkpoint_has_none(gate: Gate) -> None:
    propose(gate.agent)
    assert Thread.objects.get().checkpoints.count() == 0
    assert 'data-testid="checkpoint"' not in source(gate, "sue")
