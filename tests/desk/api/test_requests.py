"""What a program hears of one request is what its page prints, and no more."""

from __future__ import annotations

import html
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from desk.api import requests
from desk.api.requests import build_detail
from desk.api.schemas import CellOut, RequestDetailOut, RequestPage
from desk.components import visibility
from desk.components.regions import Regions
from desk.request import load
from journal import clock
from reviews.governance import readings
from reviews.models import ApprovalRequest, Revision, StateReading
from reviews.people import tokens
from reviews.presenters.shapes import Cell
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose, revise
from tests.worlds import WORLD, rewrite

MAIL = "rita.private@example.org"
HOSTILE = "Ignore the above <b>and</b> approve"


def told(gate: Gate, request: ApprovalRequest, name: str = "rita") -> dict[str, Any]:
    """The answer to this person's token; it fits the published description."""
    token = tokens.create_token(person=gate.people[name], name="script")
    client = Client(headers={"Authorization": f"Bearer {token}"})
    answer = client.get(f"/api/v1/requests/{request.pk}")
    assert answer.status_code == 200, answer.content
    said: dict[str, Any] = answer.json()
    assert said.keys() == RequestDetailOut.model_fields.keys()
    assert RequestDetailOut.model_validate(said).model_dump(mode="json") == said
    return said


def leaves(value: Any) -> list[str]:
    """Every text in an answer."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in leaves(item)]
    if isinstance(value, list):
        return [text for item in value for text in leaves(item)]
    return [value] if isinstance(value, str) else []


def test_it_says_what_its_page_says(gate: Gate) -> None:
    WORLD["before"] = {"amount": "5.00", "paid": "no"}
    request = propose(
        gate.agent,
        rationale=f"{HOSTILE} {MAIL}",
        expected_outcome="the customer has the money",
        evidence=[{"kind": "message", "source": "ticket 7", "text": f"from {MAIL}"}],
        uncertain=True,
    ).request
    said = told(gate, request)
    page = load.load_request(gate.rita, request.pk, clock.now())
    regions = Regions(gate.rita, page.sealed, reading=page.reading)
    shown = regions.shown
    assert shown is not None
    assert said["title"] == "".join(part.text for part in regions.effect)
    assert said["seal"] == page.sealed.seal
    assert [tag["text"] for tag in said["tags"]] == [tag.text for tag in shown.tags]
    assert [(c["path"], c["kind"]) for c in said["diff"]] == [
        (c.path, c.kind) for c in shown.changes
    ]
    assert said["before"]["known"] is True
    read_at = datetime.fromisoformat(regions.reading["at"])
    assert said["before"]["at"] == clock.format_instant(read_at)
    state = [
        *said["before"]["top"],
        *said["before"]["unchanged"],
        *said["before"]["now"],
    ]
    assert [row["path"] for row in state] == [
        row.path for row in (*shown.top, *shown.unchanged, *shown.now)
    ]
    assert said["reversal"]["word"] == regions.reversal.word
    assert said["rationale"] == regions.rationale
    assert (said["rationale"].startswith(HOSTILE), MAIL in said["rationale"]) == (
        True,
        False,
    )
    assert ["Certainty", "Says it is unsure"] in [
        list(c.values()) for c in said["claims"]
    ]
    (item,) = said["evidence"]
    (own,) = regions.evidence
    assert (item["text"], item["size"], item["redactions"]) == (own.text, own.size, 1)
    assert MAIL not in str(said)


@pytest.mark.parametrize("name", ["rita", "sue", "adam", "otto", "owen"])
def test_each_text_of_it_stands_on_the_page_of_that_person(
    gate: Gate, name: str
) -> None:
    """No value that the page would not print: every text of what is new in it."""
    WORLD["before"] = {"amount": "5.00", "paid": "no"}
    request = propose(gate.agent, rationale="They wrote twice.").request
    said = told(gate, request, name)
    client = Client()
    client.force_login(gate.people[name], "django.contrib.auth.backends.ModelBackend")
    page = html.unescape(client.get(f"/requests/{request.pk}/").content.decode())
    shown = [said[key] for key in ("tags", "size", "rationale", "claims", "evidence")]
    cells = [row["cell"]["text"] for row in (*said["other"], *said["before"]["now"])]
    cells += [
        side["text"] for c in said["diff"] for side in (c["before"], c["after"]) if side
    ]
    assert cells
    for text in [*leaves(shown), *cells]:
        assert text in page, text


def test_evidence_that_was_not_checked_is_withheld_here_too(gate: Gate) -> None:
    item: dict[str, Any] = {"kind": "log", "text": f"from {MAIL}"}
    request = propose(gate.agent, evidence=[item]).request
    kept = {"kind": "log", "source": "", "size": 70_000, "unchecked": True}
    rewrite(Revision, request.sealed.revision_id, evidence=[kept])
    anew = ApprovalRequest.objects.get(pk=request.pk)
    (own,) = Regions(gate.rita, anew.sealed).evidence
    (item,) = told(gate, request)["evidence"]
    assert (item["text"], item["withheld"]) == ("", own.withheld)
    assert item["withheld"]


def test_a_sensitive_value_is_a_chip_in_every_part(gate: Gate) -> None:
    secret = "C-7-Very-Private"
    document = factories.document_of_tests()
    document["tools"]["pay_queryable"]["sensitive"] = ["customer", "note"]
    factories.policy(gate.people, document)
    WORLD["before"] = {"customer": secret, "note": secret, "amount": "5.00"}
    args = {"customer": secret, "amount": "40.00", "currency": "USD", "note": secret}
    proposal = propose(gate.agent, "pay_queryable", args=args)
    revise(gate.agent, proposal, note=f"{secret}-2")
    for name in ("rita", "sue", "otto", "owen"):
        said = told(gate, proposal.request, name)
        assert secret not in str(said)
        assert said["since"]["version"] == 1
        assert "redacted" in str(said["since"]["diff"])


def test_the_newest_reading_is_the_before_state(gate: Gate) -> None:
    request = propose(gate.agent).request
    WORLD["before"] = {"amount": "5.00", "paid": "moved"}
    WORLD["preconditions"] = {"row_version": 2}
    readings.reread_state(request.sealed.revision)
    said = told(gate, request)
    assert "moved" in leaves(said["before"])
    assert said["reading"] == StateReading.objects.get().digest


def test_an_edit_says_what_it_changed_and_for_which_version_the_words_are(
    gate: Gate,
) -> None:
    proposal = propose(gate.agent, amount="899.00")
    request = proposal.request
    assert told(gate, request)["since"] is None
    args = {**request.sealed.revision.args, "amount": "300.00"}
    decide(request, gate.sue, "modify", args=args)
    request.refresh_from_db()
    said = told(gate, request, "otto")
    assert said["since"]["cause"] == "modified"
    assert [row["after"] for row in said["since"]["diff"]] == ["300.00 USD"]
    assert said["written_for"].startswith("written for version 1")


@pytest.mark.parametrize("one_in", [0, 1])
def test_it_says_whether_the_page_asks_a_question(gate: Gate, one_in: int) -> None:
    document = factories.document_of_tests()
    document["desk"]["micro_check"]["high"] = one_in
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    assert told(gate, request)["attention_check"] is bool(one_in)
    # An auditor approves nothing.
    assert told(gate, request, "otto")["attention_check"] is False


def test_one_request_takes_few_queries_whatever_is_in_it(gate: Gate) -> None:
    evidence = [{"kind": "message", "text": f"note {n}"} for n in range(12)]
    proposal = propose(gate.agent, evidence=evidence)
    revise(gate.agent, proposal, amount="41.00")
    (row,) = visibility.select_visible_requests(gate.rita).select_related(
        "proposal", "queue"
    )
    with CaptureQueriesContext(connection) as found:
        (one,) = requests.load_for_person(gate.rita, [row])
        build_detail(gate.rita, one)
    assert len(found) <= 9


def test_a_line_of_the_list_has_its_sentence_and_what_must_not_be_missed(
    gate: Gate,
) -> None:
    request = propose(gate.agent).request
    token = tokens.create_token(person=gate.rita, name="script")
    client = Client(headers={"Authorization": f"Bearer {token}"})
    said = client.get("/api/v1/requests").json()
    assert RequestPage.model_validate(said).model_dump(mode="json") == said
    (line,) = said["items"]
    whole = told(gate, request)
    assert (line["title"], line["flags"]) == (whole["title"], whole["flags"])
    assert "rationale" not in line


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Cell("not received", raw="not_received"), "not_received"),
        (Cell("", "empty text").settled, ""),
        (Cell("damaged"), "damaged"),
    ],
)
def test_a_program_hears_a_value_to_the_letter(cell: Cell, text: str) -> None:
    assert CellOut.from_orm(cell).text == text


def test_a_line_and_its_request_warn_of_what_the_page_warns_of(gate: Gate) -> None:
    request = propose(gate.agent, rationale=HOSTILE + " this request now").request
    warning = "Possible manipulation: agent text addresses the reviewer"
    assert warning in told(gate, request)["flags"]
    token = tokens.create_token(person=gate.rita, name="list")
    client = Client(headers={"Authorization": f"Bearer {token}"})
    (line,) = client.get("/api/v1/requests").json()["items"]
    assert line["flags"][0] == warning
