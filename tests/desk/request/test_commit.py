"""What a page asks beside the verdict: a look that took a while, and a question
answered. A second commit insists; nothing typed is lost."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client

from desk.components import choice
from desk.components.regions import Regions
from desk.request import attention, load
from desk.request.regions import SEEN_HEADER
from journal import clock
from journal.models import LogRecord
from policies.models import Person
from reviews.attention_checks import questions
from reviews.choices import Verdict
from reviews.decisions import submission
from reviews.models import ApprovalRequest, Decision
from tests import factories, pages
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import edited, panel, url
from tests.factories import propose
from tests.markup import read_page

TOKEN = re.compile(r'id="seen" name="seen" form="decide" value="([^"]+)"')


FLOOR = 'data-testid="floor"'


def asking(gate: Gate, *, floor: int = 0, check: int = 0) -> ApprovalRequest:
    """A payment under a floor in seconds, and a question one time in `check`."""
    document = factories.document_of_tests()
    document["desk"]["time_floor"]["high"] = floor
    document["desk"]["micro_check"]["high"] = check
    factories.policy(gate.people, document)
    return propose(gate.agent).request


@pytest.fixture
def slow(gate: Gate) -> ApprovalRequest:
    """Asks for six seconds of looking."""
    return asking(gate, floor=6)


@pytest.fixture
def quizzed(gate: Gate) -> ApprovalRequest:
    """Always asks a question."""
    return asking(gate, check=1)


def commit(client: Client, request: ApprovalRequest, sent: dict[str, Any]) -> Any:
    return client.post(url(request, "decide"), sent)


def after(request: ApprovalRequest, seconds: float) -> str:
    """The token of a page that has been on the screen for so long."""
    return pages.token(request, rendered_at=clock.now() - timedelta(seconds=seconds))


def logged(kind: str) -> list[dict[str, Any]]:
    records = LogRecord.objects.filter(kind=kind).order_by("pk")
    return [json.loads(bytes(record.leaf))["data"] for record in records]


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_too_soon_is_said_and_the_second_commit_is_taken(
    slow, as_: SignIn, headers: dict[str, str]
) -> None:
    client = as_("rita", **headers)
    sent = panel(slow, "approve", reason="sure")
    response = commit(client, slow, sent | {"seen": after(slow, 3)})
    source = read_page(response)
    assert response.status_code == 422
    assert "You opened this 3 seconds ago." in source
    assert "sure" in source
    assert '<button class="btn btn-commit" data-commit' in source
    assert not Decision.objects.exists()
    assert [one["code"] for one in logged("decision.refused")] == ["too_fast"]
    (token,) = TOKEN.findall(source)
    assert commit(client, slow, sent | {"seen": token}).status_code == 303
    decision = Decision.objects.get()
    assert decision.flags == ["fast"]
    assert decision.took_ms in range(3000, 60_000)
    (data,) = logged("decision.recorded")
    assert data["flags"] == ["fast"]


def test_after_the_floor_nothing_is_said(slow, as_: SignIn) -> None:
    sent = panel(slow, "approve") | {"seen": after(slow, 7)}
    assert commit(as_("rita"), slow, sent).status_code == 303
    assert Decision.objects.get().flags == []


def test_the_time_for_reading_is_said_before_the_decision(slow, as_: SignIn) -> None:
    client = as_("rita")
    source = read_page(client.get(url(slow)))
    until = submission.parse_page_token(
        TOKEN.findall(source)[0]
    ).rendered_at + timedelta(seconds=6)
    assert f"from {until:%H:%M:%S} UTC</time> (minimum reading time)." in source
    asked = {"arm": "approve", "seen": after(slow, 3)}
    assert FLOOR in read_page(client.get(url(slow, "decide"), asked))
    for verb, seconds in (("approve", 7), ("reject", 0)):
        asked = {"arm": verb, "seen": after(slow, seconds)}
        source = read_page(client.get(url(slow, "decide"), asked))
        assert FLOOR not in source


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_who_was_told_to_read_is_not_told_to_wait(
    slow, as_: SignIn, headers: dict[str, str]
) -> None:
    sent = panel(slow, "approve") | {"seen": after(slow, 3)}
    source = read_page(commit(as_("rita", **headers), slow, sent))
    assert "You opened this 3 seconds ago." in source
    assert FLOOR not in source


def test_a_refusal_needs_no_time(slow, as_: SignIn) -> None:
    sent = panel(slow, "reject", reason_code="unsafe") | {"seen": after(slow, 0)}
    assert commit(as_("rita"), slow, sent).status_code == 303


def test_what_is_wrong_anyway_is_said_first(gate: Gate, slow, as_: SignIn) -> None:
    sent = edited(slow, amount="20000.00") | {"seen": after(slow, 1)}
    response = commit(as_("rita"), slow, sent)
    assert "Payments over 10,000.00 are not made." in read_page(response)
    sent = panel(slow, "approve") | {"seen": after(slow, 1)}
    factories.revise(gate.agent, slow.proposal, amount="41.00")
    assert commit(as_("rita"), slow, sent).status_code == 409


def test_without_a_script_arming_does_not_start_the_clock_anew(
    slow, as_: SignIn
) -> None:
    client = as_("rita")
    asked = {"arm": "approve", "seen": after(slow, 30)}
    source = read_page(client.get(url(slow, "decide"), asked))
    (token,) = TOKEN.findall(source)
    sent = panel(slow, "approve") | {"seen": token}
    assert commit(client, slow, sent).status_code == 303
    assert (Decision.objects.get().took_ms or 0) >= 30_000


def test_a_page_is_on_the_screen_of_its_own_person_and_request_only(
    gate: Gate, as_: SignIn
) -> None:
    """Whose screen shows an older version gets no panel over it; a token that was made
    for somebody else, or for another request, says nothing of that screen."""
    request = propose(gate.agent).request
    other = propose(gate.agent, thread="t-2").request
    tokens = {
        "own": pages.token(request),
        "another person's": pages.token(request, "sue"),
        "another request's": pages.token(other),
    }
    factories.revise(gate.agent, request.proposal, amount="41.00")
    client, path = as_("rita", **HTMX), url(request, "decide") + "?arm=reject"
    armed = {
        whose: "data-commit" in client.get(path, headers={SEEN_HEADER: token}).text
        for whose, token in tokens.items()
    }
    assert armed == {
        "own": False,
        "another person's": True,
        "another request's": True,
    }


@pytest.mark.parametrize("whose", ["another person's", "another request's"])
def test_a_verdict_comes_from_the_page_of_its_own_person_and_request(
    gate: Gate, as_: SignIn, whose: str
) -> None:
    """The pages read the same, so that only whose they are is left to tell by."""
    request = propose(gate.agent).request
    other = propose(gate.agent, thread="t-2").request
    made = {
        "another person's": pages.seen(request, "tom"),
        "another request's": replace(pages.seen(request), request=other.pk),
    }
    sent = panel(request, "approve") | {"seen": made[whose].token()}
    response = commit(as_("rita"), request, sent)
    assert response.status_code == 422
    assert "This page is incomplete." in response.text
    assert not Decision.objects.exists()


def right_answer(request: ApprovalRequest, by: str = "rita") -> int:
    person = Person.objects.get(username=by)
    now = clock.now()
    loaded = load.load_request(person, request.pk, now)
    regions = Regions(person, loaded.sealed)
    asked = attention.find_attention_check(
        SessionStore(), loaded, regions, Verdict.APPROVE, now
    )
    assert asked is not None
    return asked.question.right


def test_the_question_is_the_same_until_it_is_answered(quizzed, as_: SignIn) -> None:
    client = as_("rita")
    path = url(quizzed, "decide") + "?arm=approve"
    first, second = (read_page(client.get(path)) for _ in range(2))
    cut = first[first.index('id="question"') : first.index("</fieldset>")]
    assert cut in second
    assert cut.count('name="answer"') == 4
    assert "None of these" in cut
    assert "What changes" not in cut


def test_other_verdicts_and_other_people_are_asked_otherwise(
    quizzed, as_: SignIn
) -> None:
    for verb in ("reject", "escalate"):
        path = url(quizzed, "decide") + f"?arm={verb}"
        assert 'id="question"' not in read_page(as_("rita").get(path))


def test_an_edit_is_asked_about_what_it_makes(quizzed, as_: SignIn) -> None:
    client = as_("rita", **HTMX)
    path = url(quizzed, "decide")
    assert 'id="question"' not in read_page(client.get(path + "?arm=modify"))
    sent = {**edited(quizzed, amount="39.00"), "answer": "0"}
    shown = read_page(client.post(path + "?check=1", sent))
    assert shown.count('name="answer"') == 4
    (digest,) = re.findall(r'name="question" value="(\w+)"', shown)
    refused = client.post(path, sent)  # the answer to no question that was shown
    assert refused.status_code == 422
    assert digest in read_page(refused)
    first = client.post(path, {**sent, "question": digest})
    if first.status_code == 422:  # that answer is wrong, and the second one is taken
        client.post(path, {**sent, "question": digest})
    check = Decision.objects.get().check_asked
    assert check["question"]
    assert check["answers"][-1] == 0


def sampled(gate: Gate) -> ApprovalRequest:
    """One that the policy picks, though it does not ask about each."""
    asking(gate, check=4)
    for _ in range(60):
        run = factories.new_thread()
        request = propose(gate.agent, "decline", thread=run).request
        loaded = load.load_request(gate.people["rita"], request.pk, clock.now())
        seed = choice.compute_check_seed(loaded.person, loaded.sealed)
        if questions.is_check_due(seed, 4):
            return request
    raise AssertionError("none of 60 is picked")


def decided(gate: Gate, number: int) -> None:
    """Rita decides so many others."""
    for _ in range(number):
        run = factories.new_thread()
        request = propose(gate.agent, "decline", thread=run).request
        factories.decide(request, gate.people["rita"], "reject")


def test_nobody_knows_when_the_first_question_may_come() -> None:
    drawn = [choice.draw_first_decisions(f"u-{n}") for n in range(3000)]
    assert set(drawn) == set(range(11))
    assert 4.6 < sum(drawn) / len(drawn) < 5.4, "five on average"


def test_a_new_person_is_asked_no_sampled_question(gate: Gate, as_: SignIn) -> None:
    picked, first = sampled(gate), choice.draw_first_decisions(gate.rita.public_id)
    arm = url(picked, "decide") + "?arm=approve"
    for more, expected in ((first - 1, False), (1, True)) if first else ((0, True),):
        decided(gate, more)
        client = as_("rita")
        assert ('id="question"' in read_page(client.get(arm))) is expected
        said = 'data-testid="asks"'
        assert (said in read_page(client.get(url(picked)))) is expected


def test_a_page_without_a_question_stays_without_one(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is decided elsewhere while it is open brings none."""
    monkeypatch.setattr(choice, "draw_first_decisions", lambda who: 5)
    picked = sampled(gate)
    decided(gate, 4)
    client = as_("rita")
    (token,) = TOKEN.findall(read_page(client.get(url(picked))))
    decided(gate, 1)
    sent = panel(picked, "approve") | {"seen": token}
    assert commit(client, picked, sent).status_code == 303


def test_a_new_person_is_asked_where_every_decision_is(quizzed, as_: SignIn) -> None:
    source = read_page(as_("rita").get(url(quizzed)))
    assert 'data-testid="asks"' in source
    path = url(quizzed, "decide") + "?arm=approve"
    assert 'id="question"' in read_page(as_("rita").get(path))


def test_a_right_answer_is_kept_and_marks_nothing(quizzed, as_: SignIn) -> None:
    right = right_answer(quizzed)
    sent = panel(quizzed, "approve", answer=str(right))
    assert commit(as_("rita"), quizzed, sent).status_code == 303
    decision = Decision.objects.get()
    assert decision.flags == []
    assert decision.check_asked["answers"] == [right]
    assert decision.check_asked["right"] == right


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize("then_right", [True, False])
def test_a_first_wrong_answer_is_pointed_to_the_page_and_the_second_is_taken(
    quizzed, as_: SignIn, headers: dict[str, str], then_right: bool
) -> None:
    client = as_("rita", **headers)
    right = right_answer(quizzed)
    wrong = 0 if right else 1
    sent = panel(quizzed, "approve", answer=str(wrong), reason="typed")
    response = commit(client, quizzed, sent)
    source = read_page(response)
    assert response.status_code == 422
    assert re.search(r"Check: (What changes|If it goes wrong)", source)
    assert "typed" in source
    assert 'id="question-error"' in source
    assert not Decision.objects.exists()
    (refused,) = logged("decision.refused")
    assert refused["code"] == "check"
    assert refused["answers"] == [wrong]
    second = right if then_right else wrong
    assert commit(client, quizzed, sent | {"answer": str(second)}).status_code == 303
    decision = Decision.objects.get()
    assert decision.flags == ["check_missed"]
    assert decision.check_asked["answers"] == [wrong, second]


def test_loading_the_page_again_does_not_unsay_an_answer(quizzed, as_: SignIn) -> None:
    client = as_("rita")
    right = right_answer(quizzed)
    sent = panel(quizzed, "approve")
    commit(client, quizzed, sent | {"answer": str(0 if right else 1)})
    client.get(url(quizzed))
    commit(client, quizzed, sent | {"answer": str(right)})
    assert Decision.objects.get().flags == ["check_missed"]


@pytest.mark.parametrize("answer", ["", "9", "-1", "x", "999"])
def test_without_an_answer_it_is_asked_for(quizzed, as_: SignIn, answer: str) -> None:
    response = commit(as_("rita"), quizzed, panel(quizzed, "approve", answer=answer))
    assert response.status_code == 422
    assert 'id="question-error"' in read_page(response)
    assert not Decision.objects.exists()


def test_number_keys_go_on_from_the_question_to_the_reasons(
    gate: Gate, as_: SignIn
) -> None:
    quizzed = asking(gate, check=1)
    source = read_page(as_("rita").get(url(quizzed, "decide") + "?arm=modify"))
    source = source[source.index('data-testid="panel"') :]
    keys = re.findall(r'name="(?:answer|reason_code)"[^>]*data-key="(\d+)"', source)
    assert keys == [str(number) for number in range(1, len(keys) + 1)]


def test_that_a_reason_is_needed_is_said_beside_the_verbs(
    gate: Gate, as_: SignIn
) -> None:
    said = 'data-testid="needs-reason"'
    request = propose(gate.agent, "write", args={"to": "a", "text": "b"}).request
    assert said in read_page(as_("rita").get(url(request)))
    plain = propose(gate.agent).request
    assert said not in read_page(as_("rita").get(url(plain)))


def test_what_came_from_a_narrow_screen_is_marked(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    sent = panel(request, "approve", narrow="1")
    assert commit(as_("rita"), request, sent).status_code == 303
    assert Decision.objects.get().flags == ["narrow"]
