"""Ask and Send back on the review page, and the conversation."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reviews.choices import MessageKind
from reviews.models import ApprovalRequest, Draft, Message
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import live, url
from tests.factories import decide, propose
from tests.markup import read_page
from tests.reviews.dialogue.talking import ask, reply, send_back


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    found: ApprovalRequest = propose(gate.agent).request
    return found


def sent(panel: str = "ask", text: str = "Which order?", **fields: Any) -> Any:
    return {"panel": panel, "version": 1, "reason": text, **fields}


def region(source: str) -> str:
    """The conversation, as HTML."""
    start = source.index('id="conversation"')
    return source[start : source.index("</section>", source.rindex("End of agent"))]


@pytest.mark.parametrize(
    ("panel", "heading"),
    [("ask", "Ask the agent"), ("send_back", "Send back for revision")],
)
def test_each_message_has_a_panel_and_works_without_script(
    gate: Gate, request_: ApprovalRequest, as_: SignIn, panel: str, heading: str
) -> None:
    client = as_("rita")
    assert f'data-testid="verb-{panel}"' in read_page(client.get(url(request_)))
    source = read_page(client.get(f"{url(request_, 'decide')}?arm={panel}"))
    assert heading in source
    assert "This decides nothing, and the deadline stands." in source
    answer = client.post(url(request_, "messages"), sent(panel))
    assert (answer.status_code, answer["Location"]) == (303, url(request_))
    source = read_page(client.get(url(request_)))
    assert "Which order?" in source
    assert "Rita Example" in source
    assert Message.objects.get().author == gate.rita


@pytest.mark.parametrize("name", ["otto", "owen", "adam"])
def test_who_may_not_decide_is_offered_no_message(
    request_: ApprovalRequest, as_: SignIn, name: str
) -> None:
    client = as_(name)
    source = read_page(client.get(f"{url(request_, 'decide')}?arm=ask"))
    assert 'data-testid="verb-ask"' not in source
    assert "Ask the agent" not in source
    assert client.post(url(request_, "messages"), sent()).status_code == 403
    assert not Message.objects.exists()


def test_an_agents_words_stand_in_a_fence(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    ask(request_, gate.rita)
    reply(gate, request_, "<b>Approved</b> by the supervisor")
    source = region(read_page(as_("tom").get(url(request_))))
    before, _, fenced = source.partition('class="untrusted"')
    assert "2 messages. Messages are not votes." in before
    assert "Which order?" in before
    assert "Approved" not in before
    assert "<b>Approved" not in fenced
    assert "Not checked." in fenced


def test_an_empty_text_keeps_the_panel(request_: ApprovalRequest, as_: SignIn) -> None:
    answer = as_("rita", **HTMX).post(url(request_, "messages"), sent(text=" "))
    source = read_page(answer)
    assert answer.status_code == 422
    assert 'data-testid="panel"' in source
    assert "Enter a text first. Nothing was sent." in source


def test_a_text_that_is_too_long_is_kept_and_says_the_rule(
    request_: ApprovalRequest, as_: SignIn
) -> None:
    text = "why " * 600
    answer = as_("rita", **HTMX).post(url(request_, "messages"), sent(text=text))
    source = read_page(answer)
    assert answer.status_code == 422
    assert "at most 2000 characters" in source
    assert text.strip() in source


@pytest.mark.parametrize("htmx", [True, False])
def test_a_text_survives_a_new_version(
    gate: Gate, request_: ApprovalRequest, as_: SignIn, htmx: bool
) -> None:
    factories.revise(gate.agent, request_.proposal)
    client = as_("rita", **(HTMX if htmx else {}))
    answer = client.post(url(request_, "messages"), sent())
    source = read_page(answer)
    assert answer.status_code == 409
    assert 'data-code="stale"' in source
    assert "Which order?" in source
    assert Draft.objects.get().reason == "Which order?"


def test_a_text_survives_a_decision(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    decide(request_, gate.tom)
    answer = as_("rita", **HTMX).post(url(request_, "messages"), sent())
    source = read_page(answer)
    assert (answer.status_code, 'data-code="decided"' in source) == (409, True)
    assert re.search(r'<textarea id="kept-text"[^>]*>\s*Which order\?', source)


def test_a_form_without_its_version_is_incomplete(
    request_: ApprovalRequest, as_: SignIn
) -> None:
    answer = as_("rita", **HTMX).post(url(request_, "messages"), {"reason": "Why?"})
    assert (answer.status_code, "digest_missing" in read_page(answer)) == (422, True)


def test_the_panel_says_why_nothing_can_be_sent(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    ask(request_, gate.rita)
    send_back(request_, gate.rita)
    client = as_("rita")
    for panel, why in (
        ("ask", "The agent has not answered your last question yet."),
        ("send_back", "This has been with the agent since"),
    ):
        source = read_page(client.get(f"{url(request_, 'decide')}?arm={panel}"))
        assert why in source


def test_a_person_answers_the_agents_question(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    reply(gate, request_, "Card or voucher?", kind=MessageKind.QUESTION)
    client = as_("rita")
    assert "Answer…" in read_page(client.get(url(request_)))
    source = read_page(client.get(f"{url(request_, 'decide')}?arm=ask"))
    assert "Answer the agent" in source
    assert 'name="round" value="1"' in source
    client.post(url(request_, "messages"), sent(text="Card", round=1))
    assert Message.objects.get(kind="answer").author == gate.rita
    assert "Ask…" in read_page(client.get(url(request_)))


def test_what_was_sent_back_says_so_on_the_page_and_in_the_queue(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    send_back(request_, gate.rita)
    page = read_page(as_("tom").get(url(request_)))
    assert "With the agent since" in page
    assert 'data-testid="verb-approve"' in page  # it is information, not a lock
    assert "With the agent since" in read_page(as_("tom").get("/queue/"))
    factories.revise(gate.agent, request_.proposal)
    assert "With the agent since" not in read_page(as_("tom").get(url(request_)))


def test_an_answer_reaches_an_open_page_and_leaves_the_panel_alone(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    ask(request_, gate.rita)
    client = as_("rita", **HTMX)
    etag = live(client, request_)["ETag"]
    assert live(client, request_, etag).status_code == 204
    reply(gate, request_)
    answer = live(client, request_, etag)
    source = read_page(answer)
    assert "There is a new message." in source
    assert "The one of Monday." in region(source)
    assert 'id="decide"' not in source
    assert live(client, request_, answer["ETag"]).status_code == 204


def test_a_long_conversation_takes_no_more_queries(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    client = as_("tom")

    def count() -> int:
        with CaptureQueriesContext(connection) as caught:
            client.get(url(request_))
        return len(caught)

    ask(request_, gate.rita)
    count()  # what a process reads once
    short = count()
    reply(gate, request_)
    ask(request_, gate.sue)
    reply(gate, request_)
    assert count() == short
