"""The agent's words on the page: when they were written, and what marks them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from desk.components import page_evidence
from desk.components.regions import Regions
from desk.templatetags import inert
from journal.errors import EffectUnreadable
from reviews.effects import describe
from reviews.effects.describe import EvidenceItem
from reviews.models import ApprovalRequest, Revision
from reviews.presenters.shapes import Cell
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide
from tests.markup import read_page
from tests.security.world import BACKEND

ADDRESSED = "Addressed to the reviewer (possible manipulation)"


def regions(gate: Gate, request: ApprovalRequest) -> Regions:
    sealed = page_evidence.find_version(request.pk, request.version)
    assert sealed is not None
    return Regions(gate.sue, sealed)


def test_after_a_persons_edit_the_words_keep_their_time_and_version(gate: Gate) -> None:
    proposal = factories.propose(gate.agent, "repay", amount="89.00", customer="C-1")
    request = proposal.request
    first = regions(gate, request)
    assert first.written_for == ""
    args = {**first.revision.args, "amount": "44.50"}
    decide(request, gate.sue, "modify", args=args)
    request.refresh_from_db()
    second = regions(gate, request)
    assert second.revision.number == 2
    assert second.written_for == "written for version 1 (89.00 USD)"
    assert second.said_at == first.said_at < second.proposed_at
    assert "written for version 1 (89.00 USD)" in "".join(
        page_evidence.render_regions(second).parts
    )


def test_an_agent_that_is_unsure_is_given_no_figure(gate: Gate) -> None:
    proposal = factories.propose(gate.agent, "repay", uncertain=True)
    found = dict(describe.list_agent_claims(proposal, proposal.current))
    assert found["Certainty"] == "Says it is unsure"
    assert not any("%" in text for text in found.values())


@pytest.mark.parametrize("kind", ["text", "yes or no"])
def test_an_argument_that_speaks_to_the_reviewer_is_marked(kind: str) -> None:
    shown = inert.cell(Cell("SYSTEM ALERT: click Approve", kind))
    assert (ADDRESSED in shown) == (kind == "text")
    assert ADDRESSED not in inert.cell(Cell("not_received"))


def test_short_evidence_is_open_and_says_what_it_is_and_where_from() -> None:
    item = EvidenceItem("order record", "the store", "", "x", "", 107, 0, "")
    assert item.label == "Order record from the store"
    assert item.is_short
    assert not EvidenceItem("message", "", "", "x", "", 301, 0, "").is_short


SPEAKING = "This request was checked by the fraud team. Ignore the content below."


def signs(gate: Gate, **words: Any) -> list[str]:
    run = factories.new_thread()
    request = factories.propose(gate.agent, "repay", thread=run, **words).request
    return [one.text for one in regions(gate, request).warnings if one.place]


def letter(text: str) -> list[dict[str, str]]:
    return [{"kind": "message", "source": "inbox", "text": text}]


def test_facts_say_that_the_words_further_down_speak_to_the_reviewer(
    gate: Gate,
) -> None:
    assert signs(gate, evidence=letter("Please approve my refund.")) == []
    assert signs(gate, evidence=letter(SPEAKING)) == [
        "Possible manipulation: evidence addresses the reviewer"
    ]
    assert signs(gate, rationale=SPEAKING) == [
        "Possible manipulation: agent text addresses the reviewer"
    ]
    args = {"customer": "C-1", "amount": "40.00", "currency": "USD", "note": SPEAKING}
    assert signs(gate, args=args) == [
        "Possible manipulation: an argument addresses the reviewer"
    ]
    assert signs(gate, alternatives=[{"action": SPEAKING}]) == [
        "Possible manipulation: agent text addresses the reviewer"
    ]


def test_a_domain_that_imitates_one_of_ours_is_called_out_in_every_text(
    gate: Gate,
) -> None:
    own, fake = "northgate-electronics.example", "northgate-electronlcs.example"
    document = factories.document_of_tests()
    when = {"recipients": ["to"], "domains": [own]}
    document["tools"]["write"]["classes"] = [
        {
            "name": "own",
            "title": "Mail to us",
            "when": when,
            "risk": "medium",
            "profile": {
                "reversible": True,
                "reversible_because": "A second letter corrects it.",
                "blast_radius": 3,
            },
        },
        {
            "name": "rest",
            "title": "Mail to others",
            "risk": "high",
            "profile": {"reversible": False, "blast_radius": 4, "external": True},
        },
    ]
    factories.policy(gate.people, document)
    said = "names a domain that imitates one of ours"
    assert signs(gate, rationale=f"See https://{own}/a.") == []
    assert signs(gate, rationale=f"See https://{fake}/a.") == [f"Agent text {said}"]
    # Of the evidence no address is shown, because it is redacted.
    assert signs(gate, evidence=letter(f"To desk@{fake}.")) == [f"Evidence {said}"]
    args = {"customer": "C-1", "amount": "40.00", "currency": "USD", "note": fake}
    request = factories.propose(gate.agent, "repay", args=args).request
    shown = [one.text for one in regions(gate, request).warnings]
    assert "The domain of a link or an address imitates one of ours" in shown
    assert request.versions.get().revision.facts["indicators"] == ["imitated_domain"]


def test_facts_say_that_evidence_holds_control_characters(gate: Gate) -> None:
    found = ["Evidence contains hidden or reversed text"]
    assert signs(gate, evidence=letter("\x1b[2J\x1b[32mRefund it.")) == found
    assert signs(gate, evidence=letter("Pay to: \u202eelpmaxe")) == found
    both = "\x1b[2J<form><button>Refund it</button></form>"
    assert signs(gate, evidence=letter(both)) == [f"{found[0]} and HTML"]
    assert signs(gate, evidence=letter("a < b <c@d.example> 3 <u 4")) == []
    assert (
        signs(gate, evidence=letter("64.00\u00a0USD\ufeff, it\u00adem\r\n\tfour")) == []
    )


def test_the_sign_leads_to_the_evidence_which_is_open(gate: Gate) -> None:
    items = [
        *letter("Order 7."),
        *letter("Order 8. " * 99),
        *letter(f"{'.' * 400}\n{SPEAKING}"),
    ]
    page = page_evidence.render_regions(
        regions(gate, factories.propose(gate.agent, evidence=items).request)
    )
    assert '<a class="tag tag-loud" href="#r6">' in page.parts[0]
    assert [
        " open" in one.split(">")[0] for one in page.parts[2].split("<details")[1:]
    ] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("reading", {"labels": 5, "before": {"amount": "1.00"}}),
        ("canonical", b"no json"),
    ],
)
def test_an_effect_that_cannot_be_read_stops_neither_list_nor_page(
    gate: Gate, column: str, value: Any
) -> None:
    good = factories.propose(gate.agent, "repay", customer="C-good").request
    bad = factories.propose(gate.agent, "repay", customer="C-bad").request
    worlds.rewrite(Revision, bad.sealed.revision_id, **{column: value})
    client = Client()
    client.force_login(gate.sue, BACKEND)
    for place in ("/queue/", f"/requests/{bad.pk}/"):
        assert "cannot be read" in read_page(client.get(place)), place
    assert client.get("/log/").status_code == 200
    assert "C-good" in read_page(client.get("/queue/"))
    with pytest.raises(EffectUnreadable):
        decide(bad, gate.sue)
    decide(bad, gate.sue, "reject")
    decide(good, gate.sue)


def test_a_piece_of_evidence_that_cannot_be_read_hides_no_other(gate: Gate) -> None:
    request = factories.propose(
        gate.agent, "repay", evidence=letter("Order 7.")
    ).request
    items = [{"size": "many"}, {"kind": "note", "text": "Order 8."}]
    worlds.rewrite(Revision, request.sealed.revision_id, evidence=items)
    found = describe.list_evidence(Revision.objects.get(proposal=request.proposal_id))
    assert [(one.text, one.withheld) for one in found] == [
        ("", "It cannot be read."),
        ("Order 8.", ""),
    ]
