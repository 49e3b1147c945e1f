"""What a verdict on a canary says about its reviewer, and what it leaves."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from journal.models import LogRecord, OutboxMessage
from policies.models import Person
from reviews import canary_verdicts
from reviews.choices import DefectKind
from reviews.holds import take
from reviews.models import ApprovalRequest, Canary, Hold, Stop
from tests import pages
from tests.assurance.planting import plant
from tests.conftest import Gate
from tests.factories import decide, propose

pytestmark = pytest.mark.django_db
EDIT = {"customer": "C-1042", "amount": "5.00", "currency": "USD"}
JUDGED = [
    ("approve", DefectKind.AMOUNT_TENFOLD, {}, False),
    ("reject", DefectKind.AMOUNT_TENFOLD, {}, True),
    ("escalate", DefectKind.CLAIMED_APPROVAL, {}, True),
    ("modify", DefectKind.AMOUNT_TENFOLD, {"args": EDIT}, True),
    ("modify", DefectKind.CLAIMED_APPROVAL, {"args": EDIT | {"note": "x"}}, False),
]


@pytest.mark.parametrize(("verdict", "kind", "fields", "caught"), JUDGED)
def test_a_verdict_catches_the_defect_or_not(
    gate: Gate, verdict: str, kind: DefectKind, fields: dict[str, object], caught: bool
) -> None:
    request = plant(gate, kind=kind)
    take.take_hold(request_id=request.pk, person=gate.rita)
    told = OutboxMessage.objects.count()
    decide(request, gate.rita, verdict, **fields)
    canary = Canary.objects.get(proposal=request.proposal_id)
    assert (canary.verdict, canary.caught, canary.ending) == (
        verdict,
        caught,
        "decided",
    )
    assert OutboxMessage.objects.count() == told
    assert Hold.objects.get(pk=request.pk).holder is None
    assert not Stop.objects.exists()
    kinds = LogRecord.objects.filter(proposal=request.proposal_id).order_by("pk")
    assert [row.kind for row in kinds if "hold" not in row.kind] == [
        "canary.planted",
        "canary.revealed",
    ]


def test_an_undecided_canary_ends_at_its_deadline_and_does_not_count(
    gate: Gate,
) -> None:
    request = plant(gate)
    assert canary_verdicts.end_lapsed_canaries() == 0
    ApprovalRequest.with_canaries.filter(pk=request.pk).update(
        expires_at=request.opened_at
    )
    assert canary_verdicts.end_lapsed_canaries() == 1
    canary = Canary.objects.get()
    assert (canary.ending, canary.caught) == ("expired", None)


# What differs between two pages of the same action: ids, hashes, tokens and times.
OWN_TEXTS = [
    r"[a-z]-[0-9a-z]{18,}",
    r"[0-9a-f]{4}-[0-9a-f]{4}",
    r"[0-9a-f]{64}",
    r'(?<=value=")[^"]{40,}(?=")',
    r"[A-Za-z0-9]{64}",
    r"\d{4}-\d\d-\d\dT[0-9:.+]+",
    r"\d\d:\d\d(:\d\d)?",
    r"\d+\.\d+",
]


def read_page(client: Client, request: ApprovalRequest) -> list[str]:
    """The lines of a review page without its own ids and times."""
    address = reverse("reviews:request_detail", args=[request.pk])
    html = client.get(address).content.decode()
    return [re.sub("|".join(OWN_TEXTS), "…", line) for line in html.splitlines()]


def test_the_page_of_a_canary_is_that_of_the_same_proposal(
    gate: Gate, client: Client
) -> None:
    canary = plant(gate, kind=DefectKind.AMOUNT_TENFOLD)
    revision = canary.sealed.revision
    real = propose(
        gate.agent,
        "pay",
        args=revision.args,
        thread=canary.proposal.thread,
        rationale=revision.rationale,
    ).request
    client.force_login(Person.objects.get(pk=gate.rita.pk))
    differing = [
        pair
        for pair in zip(read_page(client, canary), read_page(client, real), strict=True)
        if pair[0] != pair[1]
    ]
    assert differing == []


def test_a_reviewer_learns_at_once_that_it_was_a_canary(
    gate: Gate, client: Client
) -> None:
    """They open it, approve it, and read what was planted."""
    request = plant(gate, kind=DefectKind.AMOUNT_TENFOLD)
    client.force_login(Person.objects.get(pk=gate.rita.pk))
    address = reverse("reviews:request_detail", args=[request.pk])
    assert request.pk in client.get(reverse("reviews:queue")).content.decode()
    before = client.get(address).content.decode()
    _, main = before.lower().split("<main", 1)  # every page's menu has "Assurance"
    for word in ("canary", "drill", "planted", "assurance"):
        assert word not in main
    assert "Riley" in before or "riley" in before
    sent = {
        "verdict": "approve",
        "version": 1,
        "action_hash": request.action_hash,
        "seen": pages.token(request),
        "reason_code": "verified",
    }
    answer = client.post(reverse("reviews:decide", args=[request.pk]), sent)
    assert answer.status_code == 303, answer.content.decode()
    after = client.get(answer["Location"]).content.decode()
    assert "That was a canary, a planted test. Nothing was executed." in after
    assert "This one got past you." in after
    assert "ten times the right one" in after
    flag = reverse("reviews:canary_realism", args=[request.pk, "obvious"])
    client.post(flag)
    assert Canary.objects.get().realism == "obvious"
    client.force_login(gate.tom)
    assert client.get(address).status_code == 404
    assert client.post(flag).status_code == 404
