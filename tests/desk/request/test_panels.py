"""What a panel says before its verdict is committed: whom it asks and until when, what
the agent will be told; and a rejection that pauses the run."""

from __future__ import annotations

import re

import pytest

from journal.log import Actor
from policies import people
from policies.models import Queue
from reviews.choices import RequestStatus, Scope, StopMode
from reviews.models import ApprovalRequest, Decision, Stop
from reviews.people import preferences
from reviews.people.preferences import NotificationPreferences
from reviews.stops import stops
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.desk.request.test_views import panel, url
from tests.factories import propose
from tests.markup import read_page

PAUSE = 'name="pause"'
NAMES = (
    r"Sue Example \(on call, local time \d\d:\d\d\), "
    r"Sam Example \(local time \d\d:\d\d\)"
)


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request


def armed(as_: SignIn, request: ApprovalRequest, verdict: str) -> str:
    answer = as_("rita").get(url(request, "decide") + f"?arm={verdict}")
    assert answer.status_code == 200
    return read_page(answer)


def shown(as_: SignIn, request: ApprovalRequest) -> str:
    return read_page(as_("rita").get(url(request)))


def test_a_rejection_says_what_the_agent_is_told(request_, as_: SignIn) -> None:
    said = armed(as_, request_, "reject")
    assert "the reason you choose and your note, word for word" in said


def test_a_reason_of_another_verdict_is_refused_with_the_note_kept(
    request_, as_: SignIn
) -> None:
    for verdict, code in [("approve", "wrong_target"), ("reject", "verified")]:
        sent = panel(request_, verdict, reason_code=code, reason="my own words")
        answer = as_("rita").post(url(request_, "decide"), sent)
        source = read_page(answer)
        assert answer.status_code == 422
        assert 'data-testid="commit"' in source
        assert (code == "verified") is ('id="reason-error"' in source)
        assert "my own words" in source
    assert not Decision.objects.exists()


def test_an_escalation_names_who_is_asked_and_until_when(
    gate: Gate, request_, as_: SignIn
) -> None:
    wants = NotificationPreferences(on_call=True, zone="Asia/Tokyo")
    preferences.save_preferences(person=gate.sue, notifications=wants)
    said = armed(as_, request_, "escalate")
    asked = re.search(r"can then decide it: ([^<]+)\.", said)
    assert asked is not None
    assert re.fullmatch(NAMES, asked[1])
    until = re.search(r"expires at (\d\d:\d\d:\d\d) UTC, \d+ min from now", said)
    assert until is not None
    sent = panel(request_, "escalate", reason_code="unclear")
    assert as_("rita").post(url(request_, "decide"), sent).status_code == 303
    request_.refresh_from_db()
    assert f"{request_.expires_at:%H:%M:%S}" == until[1]


def test_an_escalation_that_nobody_would_hear_says_so(
    gate: Gate, request_, as_: SignIn
) -> None:
    for one in (gate.sue, gate.sam):
        people.dismiss_from_queues(one, Queue.objects.all(), by=Actor("system", "test"))
    source = armed(as_, request_, "escalate")
    assert 'data-testid="not-offered"' in source
    assert 'data-testid="panel"' not in source
    sent = panel(request_, "escalate", reason_code="unclear", reason="odd")
    answer = as_("rita").post(url(request_, "decide"), sent)
    assert answer.status_code == 422
    source = read_page(answer)
    assert 'data-code="policy"' in source
    assert "No other supervisor is admitted" in source
    assert "odd" in source


def test_a_rejection_pauses_the_run_too(gate: Gate, request_, as_: SignIn) -> None:
    assert PAUSE in armed(as_, request_, "reject")
    assert PAUSE not in armed(as_, request_, "approve")
    sent = panel(request_, "reject", reason_code="unsafe", reason="odd", pause="1")
    assert as_("rita").post(url(request_, "decide"), sent).status_code == 303
    request_.refresh_from_db()
    assert request_.status == RequestStatus.REJECTED
    row, proposal = Stop.objects.get(), request_.proposal
    assert (row.scope, row.mode) == (Scope.THREAD, StopMode.PAUSED)
    assert row.key == stops.build_thread_key(proposal.agent, proposal.thread)
    assert row.by == gate.rita.public_id
    assert "Nothing more of it starts." in shown(as_, request_)


def test_a_refused_rejection_pauses_nothing_and_keeps_the_mark(
    request_, as_: SignIn
) -> None:
    sent = panel(request_, "reject", pause="1")
    answer = as_("rita").post(url(request_, "decide"), sent)
    assert answer.status_code == 422
    assert f'{PAUSE} value="1" checked' in read_page(answer)
    assert not Stop.objects.exists()


def test_an_approval_pauses_nothing(request_, as_: SignIn) -> None:
    sent = panel(request_, "approve", pause="1")
    assert as_("rita").post(url(request_, "decide"), sent).status_code == 303
    assert not Stop.objects.exists()


def test_what_is_paused_already_is_not_offered_and_is_no_error(
    gate: Gate, request_, as_: SignIn
) -> None:
    proposal = request_.proposal
    stops.create_stop(
        scope=Scope.THREAD,
        key=stops.build_thread_key(proposal.agent, proposal.thread),
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="look",
    )
    assert PAUSE not in armed(as_, request_, "reject")
    sent = panel(request_, "reject", reason_code="unsafe", pause="1")
    assert as_("rita").post(url(request_, "decide"), sent).status_code == 303
    assert Stop.objects.count() == 1
