"""The explorer: filters in the address, one record, exports as jobs."""

from __future__ import annotations

import html
import re

import pytest

from desk.components import log_lines
from desk.log import exports, groups
from journal.models import LogPosition, LogRecord
from policies.choices import Role
from policies.models import Person
from reviews.administration import authority
from reviews.administration.authority import Authority, Invitation
from reviews.decisions import recall
from reviews.decisions.submission import PageEvidence
from reviews.holds import rows, take
from reviews.models import ApprovalRequest, Export
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.factories import decide, propose
from tests.markup import read_page, read_text
from tests.reviews import states

OPEN = '<details class="fold timeline" open>'
TAKEN = 'data-kind="hold.taken"'


def test_a_reason_has_the_words_of_its_panel_and_a_missing_value_is_none(
    gate: Gate, as_: SignIn
) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate", reason_code="unclear")
    assert "Rationale unclear" in read_page(as_("rita").get("/log/?kind=decision"))
    record = LogRecord.objects.get(kind="decision.recorded")
    page = read_page(as_("otto").get(f"/log/new/{record.pk}/"))
    assert "Rationale unclear" in page
    assert "step none" in page
    assert "None" not in page


def shown(source: bytes) -> int:
    return source.count(b"data-row>")


@pytest.fixture
def told(gate: Gate) -> str:
    """A refund that Rita rejected; its request."""
    request = propose(gate.agent).request
    decide(request, gate.rita, "reject", reason_code="unsafe", reason="no")
    return str(request.pk)


def test_records_of_people_include_what_was_asked_for_them(
    gate: Gate, as_: SignIn
) -> None:
    wanted = Authority(Role.REVIEWER, frozenset(), None, "ines@example.org")
    invitation = Invitation("ines", "Ines", "", wanted)
    authority.invite_person(invitation=invitation, reason="New.", by=gate.adam)
    assert "the invitation of" in read_page(as_("otto").get("/log/?kind=person"))


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("kind=decision", 1),
        ("verdict=reject", 1),
        ("verdict=approve", 0),
        ("tool=pay", None),
        ("tool=nothing", 0),
        ("risk=high", None),
        ("risk=low", 0),
        ("outcome=rejected", None),
        ("outcome=succeeded", 0),
        ("flag=fast", 0),
        ("flag=expired", 0),
        ("rule=no.such_rule", 0),
        ("after=2099-01-01", 0),
        ("until=1999-12-31", 0),
        ("after=1999-01-01&kind=decision", 1),
        ("actor=rita", None),
        ("actor=nobody", 0),
        ("digest=ffffffffffff", 0),
    ],
)
def test_each_filter_narrows(
    as_: SignIn, told: str, query: str, fits: int | None
) -> None:
    everything = shown(as_("otto").get("/log/").content)
    found = shown(as_("otto").get(f"/log/?{query}").content)
    assert found == fits if fits is not None else 0 < found <= everything


def test_the_hash_as_pages_print_it_finds_its_records(
    gate: Gate, as_: SignIn, told: str
) -> None:
    record = LogRecord.objects.get(kind="decision.recorded")
    leaf = bytes(record.leaf).decode()
    start = leaf.split('"action_hash":"sha256:')[1][:8]
    answer = as_("otto").get(f"/log/?digest={start[:4]}-{start[4:]}")
    assert shown(answer.content) == 1
    assert read_page(answer).count("<li data-kind=") > 2


@pytest.mark.parametrize(
    "query",
    ["after=13-13-13", "until=x", "before=9999999999999999999999"],
)
def test_what_does_not_fit_is_ignored(as_: SignIn, told: str, query: str) -> None:
    assert as_("otto").get(f"/log/?{query}").status_code == 200


def test_a_search_by_name_does_not_tell_what_names_are_hidden(
    gate: Gate, as_: SignIn
) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate", reason_code="unsafe")
    by_name = as_("sue").get("/log/?actor=rita&kind=request").content
    assert shown(by_name) == 0
    assert shown(as_("otto").get("/log/?actor=rita&kind=request").content) > 0


def test_a_record_of_a_decision_shows_the_form_and_its_neighbours(
    as_: SignIn, told: str
) -> None:
    record = LogRecord.objects.get(kind="decision.recorded")
    source = as_("otto").get(f"/log/new/{record.pk}/").content.decode()
    assert 'data-testid="decision"' in source
    assert "unsafe" in source
    assert "counts no" in source
    assert 'rel="prev"' in source
    assert 'rel="next"' in source


def numbers(*kinds: str) -> list[LogRecord]:
    """Records of these kinds with numbers that are none of their rows' ids."""
    found = [LogRecord.objects.get(kind=kind) for kind in kinds]
    for seq, record in enumerate(found, 1347):
        LogPosition.objects.create(seq=seq, record=record, leaf_hash=b"-")
    return found


def test_the_address_of_a_record_is_its_number(as_: SignIn, told: str) -> None:
    opened, decided = numbers("request.opened", "decision.recorded")
    client = as_("otto")
    page = read_page(client.get("/log/1348/"))
    assert read_text(client.get("/log/1348/"), "number") == "1348"
    assert "Rita Example" in page
    assert 'href="/log/1347/"' in page
    assert 'href="/log/1348/"' in client.get("/log/").content.decode()
    assert client.get(f"/log/{decided.pk}/").status_code == 404
    moved = client.get(f"/log/new/{opened.pk}/")
    assert (moved.status_code, moved["Location"]) == (302, "/log/1347/")


def claim_and_release(request: ApprovalRequest, person: Person) -> None:
    take.take_hold(request_id=request.pk, person=person)
    rows.release_hold(request_id=request.pk, person=person)


def test_a_row_says_what_was_last_decided_and_folds_claims(
    gate: Gate, as_: SignIn
) -> None:
    undone = states.recallable(gate)
    waiting = propose(gate.agent, customer="C-2").request
    recall.recall_approval(request_id=undone.pk, person=gate.rita)
    rows.release_hold(request_id=undone.pk, person=gate.rita)
    for _ in range(25):  # more records than a timeline shows
        claim_and_release(undone, gate.tom)
        claim_and_release(waiting, gate.tom)
    take.take_hold(request_id=undone.pk, person=gate.rita)
    page = read_page(as_("otto").get("/log/"))
    heads = re.findall(r'<tr data-kind="([^"]+)"', page)
    assert "request.recalled" in heads
    assert "request.opened" in heads
    assert not [kind for kind in heads if kind.startswith("hold.")]
    assert "claimed the request 20 times" in page
    lines = log_lines.build_history(gate.otto, undone)
    said = ["".join(part.text for part in line.wording) for line in lines]
    assert said[-2:] == [
        "Tom Example claimed the request 25 times",
        "Rita Example claimed the request",
    ]
    assert lines[-2].ended.startswith("released after")


def test_where_only_claims_fit_they_are_listed(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    claim_and_release(request, gate.rita)
    assert shown(as_("otto").get("/log/?actor=rita").content) == 1


def test_only_a_decision_says_how_long_it_took(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    take.take_hold(request_id=request.pk, person=gate.rita)
    decide(request, gate.rita, page=PageEvidence(took_ms=8000))
    lines = read_page(as_("otto").get("/log/")).split("<li ")[1:]
    assert [line for line in lines if TAKEN in line]
    took = [line for line in lines if " 8 s</span>" in line]
    assert len(took) == 1
    assert 'data-kind="decision.recorded"' in took[0]


def test_the_records_of_a_request_are_one_row_with_a_timeline(
    gate: Gate, as_: SignIn
) -> None:
    """One approved payment: the row of its newest record, and all of them folded."""
    request = propose(gate.agent).request
    take.take_hold(request_id=request.pk, person=gate.rita)
    decide(request, gate.rita, page=PageEvidence(took_ms=8000))
    page = read_page(as_("otto").get("/log/?kind=&agent=riley"))
    sentence = "Pay "
    rows = [row for row in rows_of(page) if "<li data-kind=" in row]
    assert len(rows) == 1
    (row,) = rows
    records = LogRecord.objects.filter(proposal=request.proposal_id)
    assert row.count("<li data-kind=") == records.count() == 7
    assert row.count(" 8 s</span>") == 1
    assert row.count(sentence) <= 1
    kinds = re.findall(r'<li data-kind="([a-z_.]+)"', row)
    assert kinds == list(records.order_by("pk").values_list("kind", flat=True))
    narrowed = read_page(as_("otto").get("/log/?kind=hold"))
    assert TAKEN in narrowed
    assert 'data-kind="execution.' not in narrowed


def test_the_only_row_stands_open_and_a_long_timeline_leads_on(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, _ = propose(gate.agent).request, propose(gate.agent, customer="C-2")
    monkeypatch.setattr(groups, "TOLD", 1)
    older = f'data-testid="older"><a href="/log/?q={request.proposal_id}"'
    page = read_page(as_("otto").get("/log/"))
    assert OPEN not in page
    assert older in page
    assert page.count("1 record</summary>") == 2
    alone = read_page(as_("otto").get(f"/log/?q={request.proposal_id}"))
    assert OPEN in alone
    assert 'data-testid="older"' not in alone


def test_a_request_is_on_one_page_alone(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one whose older records stand among those of others."""
    monkeypatch.setattr(groups, "PAGE_SIZE", 2)
    first = propose(gate.agent).request
    for number in range(4):
        propose(gate.agent, customer=f"C-{number + 2}")
    decide(first, gate.rita, "reject", reason_code="unsafe")
    seen, url = [], "/log/?agent=riley"
    while url:
        page = read_page(as_("otto").get(url))
        seen += re.findall(r'href="/requests/(r-[a-z0-9]+)/"', page)
        links = re.findall(r'class="pager"><a href="([^"]+)"', page)
        url = html.unescape(links[0]) if links else ""
    assert len(seen) == len(set(seen)) == 5
    assert seen[0] == first.pk


def rows_of(page: str) -> list[str]:
    return page.split("<tr")[1:]


def test_a_record_of_an_effect_compares_the_bytes(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent, "tag")
    record = LogRecord.objects.filter(kind="execution.queued").latest("pk")
    source = read_page(as_("otto").get(f"/log/new/{record.pk}/"))
    assert 'data-testid="ran" data-same="yes"' in source


def test_an_export_from_the_page_to_the_file(as_: SignIn, told: str) -> None:
    client = as_("otto")
    source = client.get("/log/?kind=decision").content.decode()
    assert 'value="kind=decision"' in source
    sent = {"format": "csv", "query": "kind=decision"}
    assert client.post("/log/exports/", sent)["Location"] == "/log/exports/"
    export = Export.objects.get()
    assert b"<progress" in as_("otto", **HTMX).get("/log/exports/").content
    assert client.get(f"/log/exports/{export.pk}/").status_code == 404
    exports.write_export(export.pk)
    assert f'href="/log/exports/{export.pk}/" download' in read_page(
        client.get("/log/exports/")
    )
    answer = client.get(f"/log/exports/{export.pk}/")
    assert answer["Content-Disposition"].startswith("attachment;")
    assert answer["Cache-Control"] == "no-store"
    assert b"Rita Example rejected" in b"".join(answer)


@pytest.mark.parametrize("name", ["rita", "sue", "adam", "owen"])
def test_who_does_not_export_sees_no_button_and_gets_none(
    as_: SignIn, told: str, name: str
) -> None:
    assert b'data-testid="export"' not in as_(name).get("/log/").content
    assert as_(name).get("/log/exports/").status_code == 403
    answer = as_(name).post("/log/exports/", {"format": "csv"})
    assert answer.status_code == 403
    assert not Export.objects.exists()


def test_a_wrong_format_is_said(as_: SignIn) -> None:
    answer = as_("otto").post("/log/exports/", {"format": "pdf"})
    assert answer.status_code == 422
    assert b"csv or jsonl" in answer.content
