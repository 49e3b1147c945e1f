"""Being at a request: its addresses, what its page then says, and what is kept."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from guardian.shortcuts import remove_perm

from desk.components import log_lines
from journal import clock
from journal.models import LogRecord, OutboxMessage
from policies.models import Person, Queue
from reviews.choices import MessageKind
from reviews.holds import rows, take
from reviews.models import (
    ApprovalRequest,
    Decision,
    Draft,
    Hold,
    Note,
    StateReading,
)
from reviews.people import preferences
from reviews.people.preferences import DisplayPreferences
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import panel, url
from tests.factories import decide, propose, reason_for
from tests.hitl.tasks.draining import drain
from tests.markup import find_element, read_page, read_text
from tests.reviews.dialogue.talking import reply
from tests.worlds import WORLD

HTMX_HEADER = {"HX-Request": "true"}


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request


def hold(request: ApprovalRequest, person: Any) -> str:
    return take.take_hold(request_id=request.pk, person=person).token


def lapse(request: ApprovalRequest) -> None:
    past = clock.now() - timedelta(seconds=1)
    Hold.objects.filter(pk=request.pk).update(until=past)


def shown(client: Client, request: ApprovalRequest) -> str:
    """Of a page: its strip and R8."""
    source = read_page(client.get(url(request)))
    strip = source[source.index('id="live"') : source.index('class="review')]
    return strip + source[source.rindex('data-testid="decide"') :]


def token(client: Client, request: ApprovalRequest) -> str:
    """What a page says of itself."""
    source = read_page(client.get(url(request)))
    found = re.search(r'name="seen"[^>]*value="([^"]+)"', source)
    assert found
    return found[1]


def test_opening_a_page_holds_nothing(request_, as_: SignIn) -> None:
    client = as_("rita")
    for path in (url(request_), url(request_, "decide") + "?arm=approve"):
        source = read_page(client.get(path))
        assert 'data-testid="take"' in source
    state_of(client, request_)
    assert not Hold.objects.exists()
    assert not LogRecord.objects.filter(kind__startswith="hold.").exists()
    assert not StateReading.objects.exists()


def test_the_page_takes_it_and_says_until_when(gate: Gate, request_, as_) -> None:
    client = as_("rita", **HTMX)
    response = client.post(url(request_, "hold"), headers={"If-None-Match": "1-x"})
    source = read_page(response)
    hold = Hold.objects.get()
    assert hold.holder == gate.rita
    assert hold.until is not None
    said = f">{hold.until:%H:%M:%S} UTC</time>"
    moment = f'<time datetime="{hold.until.isoformat()}"{said}'
    assert f"Claimed by you until {moment}" in source
    assert 'data-testid="release"' in source
    assert hold.token in source


def test_without_javascript_it_is_a_button_and_a_redirect(request_, as_) -> None:
    client = as_("rita")
    assert 'data-testid="take"' in shown(client, request_)
    response = client.post(url(request_, "hold"))
    assert (response.status_code, response["Location"]) == (303, url(request_))
    assert 'data-testid="release"' in shown(client, request_)
    client.post(url(request_, "release"))
    assert Hold.objects.get().holder is None


@pytest.mark.parametrize("name", ["otto", "adam", "owen"])
def test_who_only_looks_never_holds(request_, as_: SignIn, name: str) -> None:
    client = as_(name)
    source = read_page(client.get(url(request_)))
    assert 'data-testid="take"' not in source
    assert client.post(url(request_, "hold")).status_code == 403
    assert not Hold.objects.exists()


def test_a_beat_renews_and_takes_nothing(gate: Gate, request_, as_) -> None:
    client = as_("rita", **HTMX)
    client.post(url(request_, "hold"), {"beat": "1"})
    assert not Hold.objects.exists()
    hold(request_, gate.rita)
    soon = clock.now() + timedelta(seconds=30)
    Hold.objects.update(until=soon)
    client.post(url(request_, "hold"), {"beat": "1"})
    assert Hold.objects.filter(until__gt=soon).exists()


def test_another_reads_who_is_at_it_and_has_no_verb(gate: Gate, request_, as_) -> None:
    hold(request_, gate.rita)
    source = shown(as_("tom"), request_)
    assert 'data-state="held"' in source
    assert "Rita Example" in source
    assert "verb-approve" not in source
    assert 'data-testid="notify"' in source
    assert 'data-testid="break"' not in source
    assert 'data-testid="break"' in shown(as_("sue"), request_)


def test_whose_own_run_it_is_reads_no_name(gate: Gate, request_, as_) -> None:
    hold(request_, gate.rita)
    source = shown(as_("owen"), request_)
    assert 'data-state="held"' in source
    assert "Rita" not in source


def test_a_verdict_by_hand_is_refused_and_its_words_kept(
    gate: Gate, request_, as_: SignIn
) -> None:
    client = as_("tom")
    seen = token(client, request_)
    hold(request_, gate.rita)
    sent = panel(request_, "reject", reason="not this one", reason_code="unsafe")
    response = client.post(url(request_, "decide"), {**sent, "seen": seen})
    source = read_page(response)
    assert response.status_code == 409
    assert 'data-code="held"' in source
    assert "Rita Example" in source
    assert "not this one" in source
    assert not Decision.objects.exists()
    assert Draft.objects.get(person=gate.tom).reason == "not this one"


def test_a_hold_that_lapsed_is_said_so_with_the_note(gate: Gate, request_, as_) -> None:
    client = as_("rita")
    mine = {"hold": hold(request_, gate.rita), "seen": token(client, request_)}
    lapse(request_)
    hold(request_, gate.tom)
    decide(request_, gate.tom)
    sent = panel(request_, "reject", reason="my words", reason_code="unsafe")
    response = client.post(url(request_, "decide"), {**sent, **mine})
    source = read_page(response)
    assert response.status_code == 409
    assert 'data-code="lease_lapsed"' in source
    assert "Tom Example approved this at" in source
    assert "my words" in source
    assert 'data-testid="add-note"' in source


def test_break_hold_is_a_form_with_a_reason(gate: Gate, request_, as_) -> None:
    hold(request_, gate.rita)
    client = as_("sue")
    page = client.get(url(request_, "hold", "break"))
    assert "Rita Example" in read_text(page, "break-hold")
    empty = client.post(url(request_, "hold", "break"), {"reason": " "})
    assert empty.status_code == 422
    response = client.post(url(request_, "hold", "break"), {"reason": "lunch"})
    assert response.status_code == 303
    assert Hold.objects.get().holder is None
    assert LogRecord.objects.filter(kind="hold.broken").count() == 1
    assert as_("tom").get(url(request_, "hold", "break")).status_code == 403


def test_hand_over_is_offered_and_then_taken(gate: Gate, request_, as_) -> None:
    hold(request_, gate.rita)
    rita, tom = as_("rita"), as_("tom")
    page = read_page(rita.get(url(request_, "hold", "give")))
    assert gate.tom.public_id in page
    assert gate.otto.public_id not in page
    wrong = rita.post(url(request_, "hold", "give"), {"to": gate.otto.public_id})
    assert wrong.status_code == 422
    rita.post(url(request_, "hold", "give"), {"to": gate.tom.public_id})
    assert 'data-testid="take-over"' in shown(tom, request_)
    tom.post(url(request_, "hold", "take"))
    assert Hold.objects.get().holder == gate.tom


def printed(client: Client, request: ApprovalRequest) -> str:
    """The same without what is only spoken."""
    return re.sub(r'data-say="[^"]*"', "", shown(client, request))


def give(client: Client, request: ApprovalRequest, to: Person) -> None:
    client.post(url(request, "hold", "give"), {"to": to.public_id})


def live(client: Client, request: ApprovalRequest, etag: str) -> Any:
    """What an open page of that state gets when it looks again."""
    path = url(request, "live")
    return client.get(path, headers={"If-None-Match": etag, **HTMX_HEADER})


def state_of(client: Client, request: ApprovalRequest) -> str:
    return str(client.get(url(request, "live"), headers=HTMX_HEADER)["ETag"])


def test_both_open_pages_see_an_offer_and_its_end(gate: Gate, request_, as_) -> None:
    hold(request_, gate.rita)
    rita, tom = as_("rita"), as_("tom")
    before = state_of(rita, request_), state_of(tom, request_)
    give(rita, request_, gate.tom)
    mine = live(rita, request_, before[0])
    assert "Offered to Tom Example" in read_page(mine)
    assert 'data-testid="withdraw"' in read_page(mine)
    theirs = live(tom, request_, before[1])
    assert "Rita Example offers this to you" in read_page(theirs)
    assert 'data-testid="take-over"' in read_page(theirs)
    assert 'data-testid="decline"' in read_page(theirs)
    take.renew_hold(request_id=request_.pk, person=gate.rita)
    assert 'data-testid="take-over"' in shown(tom, request_)
    rita.post(url(request_, "hold", "withdraw"))
    gone = read_page(live(tom, request_, str(theirs["ETag"])))
    assert "Claimed by Rita Example since" in gone
    assert 'data-testid="take-over"' not in gone
    assert "Offered to" not in read_page(live(rita, request_, str(mine["ETag"])))


def test_an_offer_that_nobody_answered_is_told_to_who_made_it(
    gate: Gate, request_, as_: SignIn
) -> None:
    hold(request_, gate.rita)
    rita = as_("rita")
    give(rita, request_, gate.tom)
    assert printed(rita, request_).count("Offered to Tom Example") == 1
    before = state_of(rita, request_)
    drain("request.offered")
    lapse(request_)
    assert rows.free_lapsed_holds() == 1
    said = "Tom Example did not answer your offer. Your claim ended at "
    assert f'data-say="{said}' in read_page(live(rita, request_, before))
    assert f"<b>{said}" in shown(rita, request_)
    drain("request.declined")
    assert "Your offer was not accepted" in mail.outbox[-1].subject
    assert mail.outbox[-1].to == [gate.rita.email]
    assert (
        "The claim of Rita Example on the request expired; nobody answered its offer"
        in history_of(gate.rita, request_)
    )


def test_an_offer_that_ended_is_told_when_anybody_claims_it_anew(
    gate: Gate, request_
) -> None:
    for person in (gate.rita, gate.tom):
        take.offer_hold(request_id=request_.pk, person=gate.rita, to=gate.sue)
        lapse(request_)
        hold(request_, person)
    assert LogRecord.objects.filter(kind="hold.lapsed").count() == 2
    told = OutboxMessage.objects.filter(topic="request.declined")
    assert [one.facts["person"] for one in told] == [gate.rita.public_id] * 2


def test_the_rail_of_a_held_request_says_what_the_strip_does_not(
    gate: Gate, request_, as_: SignIn
) -> None:
    hold(request_, gate.rita)
    assert printed(as_("tom"), request_).count("Claimed by Rita Example") == 1
    give(as_("rita"), request_, gate.tom)
    assert printed(as_("tom"), request_).count("Rita Example offers this to you") == 1


def test_who_declines_is_named_to_who_offered(gate: Gate, request_, as_) -> None:
    hold(request_, gate.rita)
    rita, tom = as_("rita"), as_("tom")
    give(rita, request_, gate.tom)
    before = state_of(rita, request_)
    response = tom.post(url(request_, "hold", "decline"))
    assert (response.status_code, response["Location"]) == (303, url(request_))
    assert "Claimed by Rita Example since" in shown(tom, request_)
    answer = read_page(live(rita, request_, before))
    said = "Tom Example declined your offer."
    assert f'data-say="{said}"' in answer
    assert said in shown(rita, request_)
    again = tom.post(url(request_, "hold", "decline"))
    assert again.status_code == 409
    assert "no longer offered to you" in read_page(again)


def test_what_is_offered_stands_first_in_mine_with_both_answers(
    gate: Gate, as_: SignIn
) -> None:
    urgent, given = (propose(gate.agent, customer=f"C-{n}").request for n in (1, 2))
    hold(urgent, gate.tom)
    hold(given, gate.rita)
    tom = as_("tom")
    assert 'data-testid="offers"></div>' in read_page(tom.get("/queue/"))
    give(as_("rita"), given, gate.tom)
    assert "A colleague offers you a request." in read_page(tom.get("/queue/"))
    mine = read_page(tom.get("/queue/?tab=mine"))
    assert mine.index(f'data-request="{given.pk}"') < mine.index(urgent.pk)
    assert "Rita Example offers this to you" in mine
    assert re.search(r'aria-current="page">Mine\s*<span class="badge"[^>]*>2<', mine)
    answer = tom.post(url(given, "hold", "decline"), {"row": "1"})
    assert answer["Location"] == "/queue/?tab=mine"
    source = read_page(tom.get("/queue/?tab=mine"))
    assert "Declined. Rita Example keeps the claim." in source
    assert given.pk not in source


def test_an_offer_to_who_may_not_decide_any_more_is_none(
    gate: Gate, request_, as_: SignIn
) -> None:
    hold(request_, gate.rita)
    give(as_("rita"), request_, gate.tom)
    remove_perm("policies.decide", gate.tom, Queue.objects.get(name="money"))
    tom = as_("tom")
    assert request_.pk not in read_page(tom.get("/queue/?tab=mine"))
    assert 'data-testid="offers"></div>' in read_page(tom.get("/queue/"))
    for answer in ("take", "decline"):
        assert tom.post(url(request_, "hold", answer)).status_code == 404
    give(as_("rita"), request_, gate.tom)
    assert LogRecord.objects.filter(kind="hold.offered").count() == 1


def test_a_page_that_is_left_gives_back_all_but_what_it_offers(
    gate: Gate, request_, as_: SignIn
) -> None:
    token_ = hold(request_, gate.rita)
    rita = as_("rita")
    give(rita, request_, gate.tom)
    left = {"hold": Hold.objects.get().token, "leaving": "1"}
    assert left["hold"] != token_
    assert rita.post(url(request_, "release"), left).status_code == 204
    assert Hold.objects.get().holder == gate.rita
    go(rita, request_)
    assert Hold.objects.get().offered_to == gate.tom
    rita.post(url(request_, "release"))
    assert Hold.objects.get().holder is None


def test_the_mail_of_an_offer_leads_to_where_it_is_accepted(
    gate: Gate, request_, as_: SignIn
) -> None:
    hold(request_, gate.rita)
    give(as_("rita"), request_, gate.tom)
    drain("request.offered")
    (mail_,) = mail.outbox
    assert "Offered to you" in mail_.subject
    (path,) = re.findall(r"https?://[^/]+(/\S+)", str(mail_.body))
    assert 'data-testid="take-over"' in read_page(as_("tom").get(path))


def test_the_history_names_a_hand_over_to_its_two_people_and_once_it_is_settled(
    gate: Gate, request_, as_: SignIn
) -> None:
    hold(request_, gate.rita)
    give(as_("rita"), request_, gate.tom)
    as_("tom").post(url(request_, "hold", "decline"))
    give(as_("rita"), request_, gate.sue)
    as_("sue").post(url(request_, "hold", "take"))
    lines = {
        "Rita Example offered the request to Tom Example",
        "Tom Example declined the request that Rita Example offered",
        "Rita Example offered the request to Sue Example",
        "Sue Example accepted the request from Rita Example",
    }
    assert lines <= history_of(gate.otto, request_)
    assert lines <= history_of(gate.rita, request_)
    theirs = history_of(gate.tom, request_)
    assert lines & theirs == {line for line in lines if "Tom" in line}
    assert "A reviewer offered the request to a colleague" in theirs
    decide(request_, gate.sue, "reject")
    assert lines <= history_of(gate.rita, request_)
    assert not lines & history_of(gate.owen, request_)


def history_of(person: Person, request: ApprovalRequest) -> set[str]:
    """The sentences of a request's history, as this person reads them."""
    row = ApprovalRequest.objects.select_related("proposal").get(pk=request.pk)
    lines = log_lines.build_history(person, row)
    return {"".join(part.text for part in line.wording) for line in lines}


def test_notify_me_is_remembered_and_said(gate: Gate, request_, as_) -> None:
    hold(request_, gate.rita)
    client = as_("tom")
    client.post(url(request_, "hold", "ask"))
    assert Hold.objects.get().asked_by == [gate.tom.public_id]
    assert 'data-testid="notify"' not in shown(client, request_)
    assert "You will be notified" in shown(client, request_)
    assert as_("otto").post(url(request_, "hold", "ask")).status_code == 403


def test_more_time_is_offered_with_its_new_end(request_, as_: SignIn) -> None:
    client = as_("rita")
    later = request_.expires_at + timedelta(minutes=30)
    offer = read_page(client.get(url(request_, "decide") + "?arm=extend"))
    assert f">{later:%H:%M:%S} UTC</time> instead of" in offer
    request_.refresh_from_db()
    assert request_.expires_at < later
    client.post(url(request_, "extend"))
    request_.refresh_from_db()
    assert request_.expires_at == later
    most = request_.expires_at_most
    ApprovalRequest.objects.update(expires_at=most)
    assert 'data-testid="extend"' not in shown(client, request_)
    assert client.post(url(request_, "extend")).status_code == 409


def test_more_time_is_announced(request_, as_: SignIn) -> None:
    later = request_.expires_at + timedelta(minutes=30)
    answer = as_("rita", **HTMX).post(url(request_, "extend"), follow=True)
    said = f"Extended by 30 min: it expires at {later:%H:%M:%S} UTC."
    assert f'data-say="{said}' in read_page(answer)
    assert said in find_element(read_page(answer), "message")


def test_a_draft_is_saved_given_back_and_gone_once_sent(
    gate: Gate, request_, as_: SignIn
) -> None:
    client = as_("rita")
    typed = panel(request_, "reject", reason="so far", reason_code="unsafe")
    saved = client.post(url(request_, "draft"), {**typed, "password": "s3cret-pw"})
    assert saved.status_code == 204
    assert factories.count_of("s3cret-pw") == 0
    assert 'data-testid="draft"' in shown(client, request_)
    source = read_page(client.get(url(request_, "decide") + "?arm=reject"))
    assert "so far" in source
    assert re.search(r'value="unsafe" checked', source)
    typed["seen"] = token(client, request_)
    client.post(url(request_, "decide"), typed)
    assert Decision.objects.get().reason == "so far"
    assert not Draft.objects.exists()
    client.post(url(request_, "draft"), typed)
    assert not Draft.objects.exists()


def test_a_draft_is_offered_in_no_other_panel(
    gate: Gate, request_, as_: SignIn
) -> None:
    client = as_("rita")
    texts = {"reject": "for the rejection", "approve": "for the approval"}
    for verdict, text in texts.items():
        client.post(url(request_, "draft"), panel(request_, verdict, reason=text))
    asked = {"panel": "ask", "version": 1, "reason": "Which parcel?"}
    client.post(url(request_, "draft"), asked)
    factories.revise(gate.agent, request_.proposal)  # another version keeps them
    texts |= {"ask": "Which parcel?"}
    for arm in ("approve", "modify", "reject", "escalate", "ask", "send_back"):
        source = read_page(client.get(url(request_, "decide") + f"?arm={arm}"))
        note = re.search(r'<textarea id="id_reason"[^>]*>\s*([^<]*)<', source)
        assert note
        assert note[1] == texts.get(arm, "")
    reply(gate, request_, "How much?", kind=MessageKind.QUESTION)
    source = read_page(client.get(url(request_, "decide") + "?arm=ask"))
    assert "Answer the agent" in source
    assert "Which parcel?" not in source  # no answer to what the agent asks
    leaving = client.post("/queue/next/", {"from": request_.pk})
    for heading, text in [("Reject", "for the rejection"), ("Ask the agent", "Which")]:
        assert f"Your draft for {heading}: {text}" in read_page(leaving)


def test_edits_are_given_back_on_their_own_version(gate: Gate, request_, as_) -> None:
    client = as_("rita")
    typed = panel(request_, "modify", reason="less")
    edits = {"arg.customer": "C-1", "arg.amount": "12.34", "arg.currency": "USD"}
    client.post(url(request_, "draft"), {**typed, **edits})
    armed = url(request_, "decide") + "?arm=modify"
    assert 'value="12.34"' in read_page(client.get(armed))
    factories.revise(gate.agent, request_.proposal)
    source = read_page(client.get(armed))
    assert 'value="12.34"' not in source
    assert "less" in source


def test_what_expired_keeps_the_note_to_be_added(gate: Gate, request_, as_) -> None:
    client = as_("rita")
    client.post(url(request_, "draft"), panel(request_, "reject", reason="kept"))
    factories.overdue(request_)
    source = shown(client, request_)
    assert "Nothing was executed." in source
    assert "kept</textarea>" in source
    client.post(url(request_, "notes"), {"text": "kept"})
    assert Note.objects.get().text == "kept"
    assert not Draft.objects.exists()
    assert 'data-testid="notes"' in read_page(client.get(url(request_)))
    assert as_("otto").post(url(request_, "notes"), {"text": "x"}).status_code == 403


def moved(request: ApprovalRequest) -> None:
    WORLD.update(before={"amount": "7.00"}, preconditions={"row_version": 2})


def test_taking_it_up_finds_that_the_target_moved(request_, as_: SignIn) -> None:
    client = as_("rita", **HTMX)
    seen = token(as_("rita"), request_)
    moved(request_)
    response = client.post(
        url(request_, "hold"), headers={"X-Seen": seen, "If-None-Match": "1-x"}
    )
    source = read_page(response)
    assert StateReading.objects.count() == 1
    assert "The record changed at" in source
    assert 'data-testid="refresh"' in source
    assert "verb-approve" not in source
    assert "As you read it" in source
    assert "7.00" in source
    assert "verb-approve" in shown(as_("rita"), request_)


def test_a_verdict_on_the_older_state_is_refused(request_, as_: SignIn) -> None:
    client = as_("rita")
    seen = token(client, request_)
    moved(request_)
    client.post(url(request_, "hold"))
    sent = {**panel(request_, "approve", reason="fine"), "seen": seen}
    response = client.post(url(request_, "decide"), sent)
    source = read_page(response)
    assert response.status_code == 409
    assert 'data-code="precondition"' in source
    assert not Decision.objects.exists()
    sent["seen"] = token(client, request_)
    client.post(url(request_, "decide"), sent)
    assert Decision.objects.get().reading == StateReading.objects.get()


def four(gate: Gate) -> list[ApprovalRequest]:
    return [
        propose(gate.agent, customer=f"C-{n}", thread=f"t-{n}").request
        for n in range(4)
    ]


def go(client: Client, request: ApprovalRequest, **fields: str) -> str:
    sent = {"from": request.pk, "step": "next", **fields}
    return str(client.post("/queue/next/", sent)["Location"])


def test_next_and_previous_go_on_in_the_queue(gate: Gate, as_: SignIn) -> None:
    first, second, third, last = four(gate)
    client = as_("rita")
    hold(first, gate.rita)
    assert go(client, first) == url(second)
    assert Hold.objects.get(pk=first.pk).holder is None
    assert not Hold.objects.filter(pk=second.pk).exists()
    hold(third, gate.tom)
    assert go(client, second) == url(last)
    assert go(client, last, step="previous") == url(second)


def test_next_keeps_to_the_filter_and_ends_with_words(gate: Gate, as_: SignIn) -> None:
    first, *_ = four(gate)
    client = as_("rita")
    assert go(client, first, filters="?q=t-2") != url(first)
    for one in ApprovalRequest.objects.exclude(pk=first.pk):
        hold(one, gate.tom)
    Hold.objects.exclude(pk=first.pk).update(
        holder=gate.tom,
        token="t",
        taken_at=clock.now(),
        until=clock.now() + timedelta(minutes=5),
    )
    assert go(client, first) == "/queue/?empty=1"
    assert "No other request in this queue" in read_page(client.get("/queue/"))


def test_next_asks_before_it_leaves_what_was_typed(gate: Gate, as_: SignIn) -> None:
    first, second, *_ = four(gate)
    client = as_("rita")
    client.post(url(first, "draft"), panel(first, "reject", reason="not done"))
    asked = client.post("/queue/next/", {"from": first.pk, "step": "next"})
    assert asked.status_code == 200
    assert "not done" in read_page(asked)
    assert go(client, first, sure="1") == url(second)
    assert Draft.objects.count() == 1


@pytest.mark.parametrize(
    ("wish", "verdict", "goes"),
    [
        ("off", "approve", False),
        ("on", "approve", True),
        ("on", "reject", True),
        ("unless_rejected", "reject", False),
        ("unless_rejected", "escalate", True),
    ],
)
def test_who_prefers_it_goes_on_once_it_is_decided(
    gate: Gate, as_: SignIn, wish: Any, verdict: str, goes: bool
) -> None:
    first, second, *_ = four(gate)
    preferences.save_preferences(
        person=gate.rita, display=DisplayPreferences(advance=wish)
    )
    client = as_("rita")
    sent = panel(first, verdict, reason="so", reason_code=reason_for(verdict))
    sent["seen"] = token(client, first)
    to = client.post(url(first, "decide"), sent)["Location"]
    assert to == (url(second) if goes else url(first))
    assert not Hold.objects.filter(pk=second.pk).exists()
    said = read_page(client.get(to))
    assert (f"request {first.pk}." in said) == goes


@pytest.mark.parametrize(
    "path",
    [
        "hold",
        "release",
        "extend",
        "hold/ask",
        "hold/take",
        "hold/decline",
        "hold/withdraw",
        "draft",
        "notes",
    ],
)
def test_a_get_changes_nothing_and_a_stranger_finds_nothing(
    gate: Gate, request_, as_: SignIn, path: str
) -> None:
    assert as_("rita").get(url(request_, path)).status_code == 405
    assert as_("rita").post(f"/requests/r-none/{path}/").status_code == 404


def test_bad_input_is_never_a_failure(request_, as_: SignIn) -> None:
    client = as_("rita")
    bad = {"version": "x", "verdict": "x", "reason": "y" * 9000, "step": "x"}
    for path in ("hold", "release", "draft"):
        assert client.post(url(request_, path), bad).status_code < 500
    assert client.post(url(request_, "notes"), {}).status_code == 422
    assert client.post("/queue/next/", {"from": "r-%00", "filters": "&&="}).status_code


def test_the_times_of_a_state_are_elements(gate: Gate, as_: SignIn) -> None:
    """Strip, outcome and look: the time that our own sentence says names its day."""
    request = propose(gate.agent).request
    decide(request, gate.sue, "reject")
    request.refresh_from_db()
    at = request.settled_at
    assert at is not None
    time = f'<time datetime="{at.isoformat()}">{at:%H:%M:%S} UTC</time>'
    client = as_("rita")
    source = shown(client, request)
    assert source.count(f"Rejected by Sue Example {time}") == 2
    row = read_page(client.get(f"/requests/{request.pk}/peek/"))
    assert f"Rejected by Sue Example {time}" in row
