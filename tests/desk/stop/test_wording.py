"""The words of the pages of stops and revocations."""

from __future__ import annotations

import re

import pytest

from desk.components.in_flight import InFlightCounts
from desk.stop.result import FATES, STATE_TITLES
from reviews.choices import STOP_REASON_LABELS, Scope, StopMode
from reviews.stops import stops
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.markup import read_page, read_text
from tests.reviews import states

LOADS = [
    (InFlightCounts(0, 0, 0), "Nothing is in progress.", "Nothing is in progress."),
    (
        InFlightCounts(2, 1, 1),
        "2 queued: will be cancelled · 1 running: asked to stop, may finish"
        " · 1 pending request: will be withdrawn",
        "2 queued: kept, will not run · 1 running: may finish"
        " · 1 pending request: will stay open",
    ),
]
REASONS = [
    "Causing harm",
    "Incorrect actions",
    "Runaway volume",
    "Possibly compromised",
    "Maintenance",
    "Other (please specify)",
]
TITLES = {
    "became_stop": "Changed to a stop",
    "resumed": "Resumed",
    "paused": "Paused",
    "revoking": "Revoking…",
    "revoked": "Revoked",
    "stopping": "Stopping…",
    "stopped": "Stopped",
}
FATE_WORDS = {
    "running": "Running: asked to stop, may finish",
    "queued": "Being cancelled",
    "kept": "Kept, does not run",
    "cancelled": "Cancelled. It never ran.",
    "late": "Its execution window ended. It never ran.",
    "asked": "This vote no longer counts: another approval is needed",
    "before": "Already completed",
    "unknown_before": "Started before. Result unknown.",
    "withdrawn": "Withdrawn. No decision is needed.",
    "finished": "Started before, and completed",
    "failed": "Started before, and failed without effect",
    "unknown": "Started before. Result unknown.",
}
REVOKE = [
    (
        "queued",
        "1 authorized and queued: it will be refused, and the agent told why.",
    ),
    (
        "running",
        "1 running now: a check right before the effect will stop it, unless the effect"
        " has started.",
    ),
    ("votes", "They have no vote on a pending request."),
]


@pytest.mark.parametrize(("load", "stopped", "paused"), LOADS)
def test_the_work_in_progress_is_counted(
    load: InFlightCounts, stopped: str, paused: str
) -> None:
    assert (load.if_stopped, load.if_paused) == (stopped, paused)


def test_every_reason_state_and_fate_has_its_words() -> None:
    assert list(STOP_REASON_LABELS.values()) == REASONS
    assert STATE_TITLES == TITLES
    assert {fate: words for fate, (_, words) in FATES.items()} == FATE_WORDS


def test_the_list_says_what_still_runs(gate: Gate, as_: SignIn) -> None:
    client = as_("sue")
    said = read_text(client.get("/stop/"), "nothing-off")
    assert said == "Nothing is stopped or paused."
    states.claimed(gate)
    stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="x")
    page = client.get("/stop/")
    assert read_text(page, "switch-state") == "Stopping, 1 still running"
    # What is being stopped is not offered again, so nothing is said to follow from it.
    said = read_text(page, "load-agent:riley")
    assert said.startswith("Stopping since ")
    assert "running" not in said


def test_who_can_only_pause_is_not_told_of_a_stop(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    for name, word in (("rita", "Pause"), ("sue", "Stop")):
        source = read_page(as_(name).get("/stop/?agent=riley&thread=t-1"))
        assert re.search(rf"<h1[^>]*>\s*{word}\s+run", source)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("", "Choose a reason, or enter details. The audit log keeps them."),
        ("other", "Enter details of the other reason. The audit log keeps them."),
    ],
)
def test_a_missing_reason_is_asked_for_by_its_fields(
    gate: Gate, as_: SignIn, code: str, text: str
) -> None:
    propose(gate.agent)
    sent = {"target": "agent:riley", "mode": "stopped", "reason_code": code}
    said = read_text(as_("sue").post("/stop/", sent), "problem")
    assert said == f"Nothing was stopped. {text}"


@pytest.mark.parametrize(("testid", "text"), REVOKE)
def test_a_revocation_says_what_it_affects(
    gate: Gate, as_: SignIn, testid: str, text: str
) -> None:
    states.queued(gate)
    states.claimed(gate, "pay_queryable")
    page = as_("sue").get(f"/reviewers/{gate.rita.public_id}/revoke/")
    assert read_text(page, testid) == text


def test_resuming_everything_takes_two_people(gate: Gate, as_: SignIn) -> None:
    row = stops.create_stop(
        scope=Scope.EVERYTHING, person=gate.adam, mode=StopMode.PAUSED, reason="x"
    )
    url = f"/stop/{row.pk}/"
    said = read_text(as_("sue").get(url), "first-of-two")
    assert said == "Two people must confirm. You are the first person."
    first = as_("sue").post(f"{url}lift/", {"reason": "fixed"}, follow=True)
    assert read_text(first, "message") == "Requested. A second person must confirm."
    assert read_text(first, "lift-asked") == (
        "Sue Example asked to resume. Another supervisor or administrator, not you,"
        " must confirm."
    )
    said = read_text(as_("sam").get(url), "second-of-two")
    assert said == "You are the second person: everything resumes immediately."
    second = as_("sam").post(f"{url}lift/", {"reason": "fixed"}, follow=True)
    assert read_text(second, "message") == "Resumed."
