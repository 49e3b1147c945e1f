"""What the one search box finds, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from desk.log import search, search_entries
from desk.log.filters import LogFilters, select_records
from journal import clock
from journal.models import LogPosition, LogRecord
from reviews.choices import Scope
from reviews.models import ApprovalRequest, Revision, SearchEntry
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose, revise
from tests.worlds import WORLD

SECRET = "Very-Private-77"


@pytest.fixture
def paid(gate: Gate) -> ApprovalRequest:
    """449.50 for an order of another customer's, in a run that is named otherwise."""
    gate.people["sue"].first_name, gate.people["sue"].last_name = "Sue", "Lindqvist"
    gate.people["sue"].save()
    WORLD["keys"] = {"customer": "C-1017"}
    request = propose(
        gate.agent, amount="449.50", customer="78261", thread="evening-run"
    ).request
    decide(request, gate.sue, "reject", reason_code="wrong_amount")
    WORLD["keys"] = {"customer": "C-2"}
    propose(gate.agent, amount="40.00", customer="C-2", thread="other")
    search_entries.add_missing_entries()
    return request


def found(person: Any, q: str) -> set[str]:
    """Proposals whose records this person finds."""
    hits = search.search_log(person, q)
    rows = LogRecord.objects.filter(hits.fits)
    return set(rows.exclude(proposal="").values_list("proposal", flat=True))


def log(person: Any, q: str) -> str:
    client = Client()
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    return client.get("/log/", {"q": q}).content.decode()


@pytest.mark.parametrize(
    "q",
    [
        *("449.50", "sue", "Sue Lindqvist", "C-1017", "c-1017", "wrong amount"),
        *("78261", "1017 449.50", "evening", "evening-run", "pay 78261"),
    ],
)
def test_a_natural_query_finds_the_request_and_no_other(
    gate: Gate, paid: ApprovalRequest, q: str
) -> None:
    assert found(gate.otto, q) == {paid.proposal_id}
    page = log(gate.otto, q)
    assert "449.50" in page
    assert "40.00" not in page


def test_tools_agents_rules_and_ids_are_found(
    gate: Gate, paid: ApprovalRequest
) -> None:
    everything = set(Revision.objects.values_list("proposal", flat=True))
    assert found(gate.otto, "pay") == found(gate.otto, "riley") == everything
    assert found(gate.otto, paid.pk.upper()) == {paid.proposal_id}
    assert found(gate.otto, paid.proposal_id) == {paid.proposal_id}
    assert found(gate.otto, "nothing-such") == found(gate.otto, "…") == set()


def test_a_number_finds_the_record_of_that_number(
    gate: Gate, paid: ApprovalRequest
) -> None:
    record = LogRecord.objects.filter(request=paid.pk).earliest("pk")
    LogPosition.objects.create(seq=1347, record=record, leaf_hash=b"-")
    hits = search.search_log(gate.otto, "1347")
    assert [row.pk for row in LogRecord.objects.filter(hits.fits)] == [record.pk]
    assert search.search_log(gate.otto, "9" * 30).fits is not None


def test_what_a_person_did_beside_requests_is_found_by_their_name(gate: Gate) -> None:
    stop = stops.create_stop(
        scope=Scope.TOOL, key="pay", person=gate.adam, reason="storm"
    )
    hits = search.search_log(gate.otto, "adam")
    kinds = LogRecord.objects.filter(hits.fits).values_list("kind", flat=True)
    assert stop.pk
    assert "stop.raised" in kinds


def test_nothing_that_is_redacted_or_sensitive_is_found(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["pay_queryable"]["sensitive"] = ["customer", "note", "amount"]
    factories.policy(gate.people, document)
    mail = "lea.private@example.org"
    args = {"customer": SECRET, "amount": "41.77", "currency": "USD", "note": SECRET}
    WORLD["keys"] = {"customer": SECRET}
    one = propose(gate.agent, "pay_queryable", args=args)
    WORLD["keys"] = {"customer": mail}
    other = propose(gate.agent, rationale=f"for {mail}")
    search_entries.add_missing_entries()
    assert SearchEntry.objects.count() == 2
    for q in (SECRET, "private-77", "very", "77", "41.77", "lea", mail, "lea.private"):
        assert found(gate.otto, q) == set(), q
    assert found(gate.otto, "riley") == {one.pk, other.pk}


def test_a_name_that_is_hidden_is_not_told_by_the_search(gate: Gate) -> None:
    """A vote on what is open; and to the owner, who decided at all."""
    asked = propose(gate.agent, amount="899.00").request
    decide(asked, gate.sue)
    settled = propose(gate.agent, customer="C-2").request
    decide(settled, gate.sue, "reject", reason_code="duplicate")
    search_entries.add_missing_entries()
    for q in ("sue", "duplicate"):
        assert found(gate.owen, q) == set(), q
    assert found(gate.sam, "sue") == {settled.proposal_id}
    assert found(gate.sue, "sue") == {asked.proposal_id, settled.proposal_id}
    assert found(gate.otto, "sue") == {asked.proposal_id, settled.proposal_id}


def test_who_reads_part_of_the_log_finds_in_that_part(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others' newer proposals do not push one's own out of what is looked at."""
    mine = propose(gate.agent, amount="44.10").request
    decide(mine, gate.rita, "reject", reason_code="unsafe")
    stranger = factories.agent(gate.adam, "bo")
    for number in range(3):
        propose(stranger, amount="44.10", customer=f"C-{number + 5}")
    search_entries.add_missing_entries()
    monkeypatch.setattr(search, "MAX_PROPOSALS", 2)
    assert found(gate.rita, "44.10") == {mine.proposal_id}
    assert not search.search_log(gate.rita, "44.10").cut
    assert search.search_log(gate.otto, "44.10").cut
    assert "Only the newest" in log(gate.otto, "44.10")


def test_entries_are_made_for_each_revision_once_and_in_pieces(gate: Gate) -> None:
    proposal = propose(gate.agent, amount="41.00")
    revise(gate.agent, proposal, amount="42.00")
    propose(gate.agent, "tag")
    propose(gate.agent, "no_such_tool", args={"x": 1})
    assert [
        search_entries.add_missing_entries(limit=3),
        search_entries.add_missing_entries(limit=3),
    ] == [3, 1]
    assert search_entries.add_missing_entries() == 0
    for q in ("41.00", "42.00"):
        assert found(gate.otto, q) == {proposal.pk}
    late = Revision.objects.earliest("pk")
    SearchEntry.objects.filter(pk=late.pk).delete()  # committed after the others
    assert search_entries.add_missing_entries() == 1


def test_a_search_asks_the_same_queries_however_much_there_is(gate: Gate) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as told:
            search.search_log(gate.otto, "C-1", until=clock.now())
        return len(told)

    propose(gate.agent, amount="44.10")
    search_entries.add_missing_entries()
    asked()
    few = asked()
    for number in range(12):
        propose(gate.agent, amount="44.10", thread=f"run-{number}")
    search_entries.add_missing_entries()
    assert asked() == few <= 6


def test_words_are_looked_up_in_their_index(gate: Gate) -> None:
    propose(gate.agent)
    search_entries.add_missing_entries()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            "EXPLAIN SELECT revision_id FROM reviews_searchentry WHERE words @@ %s",
            ["'riley':*"],
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "search_words" in plan


def test_an_export_leaves_nothing_out(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        propose(gate.agent, amount="44.10", customer=f"C-{number + 5}")
    search_entries.add_missing_entries()
    monkeypatch.setattr(search, "MAX_PROPOSALS", 2)
    opened = LogFilters(q="44.10", kind="request")
    assert select_records(gate.otto, opened).count() == 3
    cut = search.search_log(gate.otto, "44.10")
    assert select_records(gate.otto, opened, cut).count() == 2
