"""A second review is blind, by another person, and changes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from assurance import second_reviews
from desk.components import visibility
from journal import clock
from journal.errors import AlreadyDecided, NotPermitted, RequestExpired, TextMissing
from journal.models import LogRecord
from policies.models import Person
from reviews.choices import SampleCause, Verdict
from reviews.holds import take
from reviews.models import ApprovalRequest, Decision, SecondReview, UpheldReview
from stats.plots.second_reviews import compute_kappa
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.markup import read_page, read_text

pytestmark = pytest.mark.django_db
SECRET = "because the invoice matches"


def choose(gate: Gate, verdict: str = "approve", **fields: object) -> Decision:
    """A second review of a decision of Rita's."""
    request = propose(gate.agent, thread=factories.new_thread()).request
    decide(request, gate.rita, verdict, reason=SECRET, **fields)
    decision = Decision.objects.get(request=request)
    second_reviews.choose_decision(decision_id=decision.pk, cause=SampleCause.SAMPLE)
    return decision


def answer(decision: Decision, person: Person, verdict: str, reason: str = "x") -> None:
    second_reviews.record_answer(
        decision_id=decision.pk, person=person, verdict=Verdict(verdict), reason=reason
    )


def settle(decision: Decision, person: Person, upheld: str = "second") -> None:
    second_reviews.record_ruling(
        decision_id=decision.pk, person=person, upheld=UpheldReview(upheld), reason="x"
    )


def test_the_share_of_the_policy_is_chosen_once(gate: Gate) -> None:
    document = factories.document_of_tests()
    for share, least, most in ((0.0, 0, 0), (0.25, 1, 30)):
        assurance = {"assurance": {"second_reviews": share}}
        factories.policy(gate.people, {**document, **assurance})
        if not share:
            for _ in range(24):
                request = propose(gate.agent, thread=factories.new_thread(), amount="1")
                if request.request.tier == "approve":
                    decide(request.request, gate.rita)
        chosen = second_reviews.choose_second_reviews()
        # The first one is on a customer whom nobody decided on before.
        first, *others = Decision.objects.filter(request__tier="approve").order_by("pk")
        likely = [(first, 4 * share), *((one, share) for one in others)]
        expected = [
            one for one, p in likely if second_reviews.draw_number(one.request_id) < p
        ]
        assert chosen == len(expected) == SecondReview.objects.count()
        assert least <= chosen <= most
        assert second_reviews.choose_second_reviews() == 0


def test_another_person_answers_once_and_in_time(gate: Gate) -> None:
    decision = choose(gate)
    with pytest.raises(NotPermitted):
        answer(decision, gate.rita, "approve")
    with pytest.raises(NotPermitted):
        answer(decision, gate.owen, "approve")
    with pytest.raises(TextMissing):
        answer(decision, gate.tom, "reject", reason=" ")
    answer(decision, gate.tom, "approve")
    with pytest.raises(AlreadyDecided):
        answer(decision, gate.sue, "reject")
    late = choose(gate)
    past = clock.now() - timedelta(seconds=1)
    SecondReview.objects.filter(pk=late.pk).update(due_at=past)
    with pytest.raises(RequestExpired):
        answer(late, gate.tom, "approve")
    assert not second_reviews.select_open_reviews(gate.tom, clock.now()).exists()


def test_a_third_person_settles_a_disagreement_and_reopens_nothing(gate: Gate) -> None:
    decision = choose(gate, "reject")
    answer(decision, gate.sue, "approve")
    for other in (gate.rita, gate.tom, gate.sue):
        with pytest.raises(NotPermitted):
            settle(decision, other)
    settle(decision, gate.sam)
    with pytest.raises(AlreadyDecided):
        settle(decision, gate.sam, "first")
    decision.request.refresh_from_db()
    assert decision.request.status == "rejected"
    assert not decision.request.proposal.grants.exists()
    kinds = LogRecord.objects.filter(kind__startswith="second_review.")
    assert [row.kind.split(".")[1] for row in kinds.order_by("pk")] == [
        "chosen",
        "answered",
        "settled",
    ]


def test_the_page_is_blind_until_both_have_answered(gate: Gate, client: Client) -> None:
    decision = choose(gate)
    address = reverse("reviews:second_review", args=[decision.pk])
    client.force_login(Person.objects.get(pk=gate.tom.pk))
    assert address in client.get(reverse("reviews:second_reviews")).content.decode()
    shown = client.get(address).content.decode()
    assert "40.00" in shown
    for told in (SECRET, "Rita", "Approved"):
        assert told not in shown
    refused = client.post(address, {"answer": "reject", "reason": ""})
    assert refused.status_code == 422
    sent = client.post(address, {"answer": "reject", "reason": "Not theirs."})
    assert sent.status_code == 302
    assert client.get(address).status_code == 404
    client.force_login(Person.objects.get(pk=gate.sue.pk))
    both = client.get(address).content.decode()
    assert SECRET in both
    assert "Not theirs." in both
    client.post(address, {"answer": "second", "reason": "Tom is right."})
    assert SecondReview.objects.get().upheld == "second"


def read_everywhere(client: Client, decision: Decision) -> str:
    """What each page that lists or shows the request says to who is signed in."""
    request = decision.request
    record = LogRecord.objects.get(kind="decision.recorded", request=request.pk)
    proposal = request.proposal
    paths = [
        f"/requests/{request.pk}/",
        f"/requests/{request.pk}/live/",
        f"/log/?q={proposal.pk}",
        f"/log/new/{record.pk}/",
        f"/queue/?tab=done&q={proposal.thread}",
        reverse("agents:thread", args=[proposal.agent, proposal.thread]),
        reverse("agents:agent", args=[proposal.agent]),
        f"/api/v1/requests/{request.pk}",
        f"/api/v1/requests?status={request.status}",
    ]
    return " ".join(client.get(path).content.decode() for path in paths)


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_who_may_review_it_reads_nowhere_how_it_was_decided(
    gate: Gate, client: Client, verdict: str
) -> None:
    decision = choose(gate, verdict)
    told = decision.request.pk
    for name, blind in (("tom", True), ("sue", True), ("rita", False), ("otto", False)):
        client.force_login(Person.objects.get(pk=gate.people[name].pk))
        page = read_everywhere(client, decision)
        assert (f'href="/requests/{told}/' not in page) == blind, name
        assert (SECRET not in page) == blind, name
        row = ApprovalRequest.objects.get(pk=told)
        seen = visibility.select_visible_requests(gate.people[name]).filter(pk=told)
        assert seen.exists() is visibility.is_visible_request(gate.people[name], row)
        assert seen.exists() is not blind
    answer(decision, gate.tom, "approve")
    for name in ("tom", "sue"):
        client.force_login(Person.objects.get(pk=gate.people[name].pk))
        assert SECRET in read_everywhere(client, decision)


def test_who_handed_it_over_does_not_read_the_verdict_before_they_answer(
    gate: Gate, client: Client
) -> None:
    request = propose(gate.agent, thread=factories.new_thread()).request
    take.offer_hold(request_id=request.pk, person=gate.tom, to=gate.rita)
    take.take_hold(request_id=request.pk, person=gate.rita, accept=True)
    decide(request, gate.rita, reason=SECRET)
    decision = Decision.objects.get(request=request)
    second_reviews.choose_decision(decision_id=decision.pk, cause=SampleCause.SAMPLE)
    client.force_login(Person.objects.get(pk=gate.tom.pk))
    assert SECRET not in read_everywhere(client, decision)
    page = client.get(reverse("reviews:second_review", args=[decision.pk]))
    assert page.status_code == 200
    assert b'class="section asks"' not in page.content  # a panel takes the focus


def test_kappa_is_the_agreement_beyond_chance() -> None:
    """The example of Cohen's coefficient: 20 and 15 of 50 agree, 5 and 10 do not."""
    bins = {
        "approve\x1fapprove": 20,
        "approve\x1freject": 5,
        "reject\x1fapprove": 10,
        "reject\x1freject": 15,
    }
    assert compute_kappa(bins) == pytest.approx(0.4)
    assert compute_kappa({"approve\x1fapprove": 9}) is None
    assert compute_kappa({}) is None


def test_the_queue_says_how_many_wait(gate: Gate, client: Client) -> None:
    document = factories.document_of_tests()
    assurance = {"assurance": {"second_reviews": 0.05}}
    factories.policy(gate.people, {**document, **assurance})
    choose(gate)
    client.force_login(Person.objects.get(pk=gate.tom.pk))
    assert "Second reviews waiting for your answer: 1." in read_text(
        client.get("/queue/"), "second-reviews"
    )
    client.force_login(Person.objects.get(pk=gate.rita.pk))  # made the first decision
    assert 'data-testid="second-reviews"' not in read_page(client.get("/queue/"))


def test_who_is_barred_from_the_request_gives_no_second_review(gate: Gate) -> None:
    decision = choose(gate)
    now = clock.now()
    assert second_reviews.select_open_reviews(gate.tom, now).exists()
    barred = [*decision.request.barred, gate.tom.public_id]
    ApprovalRequest.objects.filter(pk=decision.request_id).update(barred=barred)
    assert not second_reviews.select_open_reviews(gate.tom, now).exists()


def test_only_the_installations_key_says_who_is_drawn(settings: Any) -> None:
    drawn = second_reviews.draw_number("r-1")
    assert drawn == second_reviews.draw_number("r-1")
    settings.SECRET_KEY = "another"
    assert drawn != second_reviews.draw_number("r-1")
