"""Queries that are compiled once return what the ORM returns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import DurationField, F, QuerySet, Value
from django.db.models.functions import Concat
from django.db.models.sql.compiler import SQLCompiler, SQLUpdateCompiler

from journal.models import Heartbeat
from journal.prepared_queries import (
    ModelColumns,
    Parameter,
    PreparedQuery,
    PreparedUpdate,
)
from journal.statements import Statement
from policies.models import Queue, Tool
from reviews.models import ApprovalRequest, Proposal, RequestVersion
from tests.conftest import Gate
from tests.factories import decide, propose

Build = Callable[[Any], QuerySet[Any, Any]]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AGENT, ID, IDS = "riley", Parameter("pk"), Parameter("ids")


@pytest.fixture
def asked(gate: Gate) -> list[Proposal]:
    proposals = [propose(gate.agent, customer=f"C-{n}") for n in range(3)]
    decide(proposals[0].request, gate.rita)
    return proposals


def state(row: Any) -> Any:
    """The columns that were loaded, and those of the rows beside it."""
    if not hasattr(row, "_meta"):
        return row
    beside = {
        name: state(other)
        for name, other in row._state.fields_cache.items()
        if hasattr(other, "_meta") and name in {"proposal", "queue", "tool", "revision"}
    }
    own = {k: v for k, v in row.__dict__.items() if not k.startswith("_")}
    return type(row), own, beside


QUERIES: dict[str, Build] = {
    "rows": lambda pk: Proposal.objects.filter(pk=pk),
    "with-others": lambda pk: ApprovalRequest.objects.select_related(
        "proposal", "queue"
    ).filter(proposal_id=pk),
    "deeper": lambda pk: RequestVersion.objects.select_related("revision__tool").filter(
        request__proposal_id=pk, number=F("request__version")
    ),
    "some-columns": lambda pk: (
        RequestVersion.objects.select_related("revision")
        .only("number", "steps", "revision__action_hash")
        .filter(request__proposal_id=pk)
    ),
    "tuples": lambda pk: Proposal.objects.filter(pk=pk).values_list(
        "agent", "on_behalf_of", "request__version"
    ),
    "values": lambda pk: Proposal.objects.filter(pk=pk).values_list("agent", flat=True),
    "annotated": lambda pk: Proposal.objects.filter(pk=pk).annotate(
        said=Concat(F("agent"), Value(" 100 % '$1' "), F("thread"))
    ),
    "constants": lambda pk: Proposal.objects.filter(
        pk=pk, agent=AGENT, request__status__in=["pending", "authorized"]
    ),
    "no-constant": lambda pk: Proposal.objects.filter(pk=pk, agent="%s $1 '"),
    "first": lambda pk: Proposal.objects.filter(pk=pk).order_by("-created_at")[:1],
}


@pytest.mark.parametrize("name", QUERIES)
def test_it_finds_what_the_orm_finds(asked: list[Proposal], name: str) -> None:
    query = PreparedQuery(lambda: QUERIES[name](ID))
    for proposal in asked:
        rows = query.fetch_all(pk=proposal.pk)
        expected = list(QUERIES[name](proposal.pk))
        assert [state(row) for row in rows] == [state(row) for row in expected]
    assert query.fetch_all(pk="p-none") == []


def test_one_text_for_lists_of_any_length(asked: list[Proposal]) -> None:
    query = PreparedQuery(
        lambda: Proposal.objects.filter(pk__any=IDS).order_by("created_at")
    )
    keys = [proposal.pk for proposal in asked]
    for count in range(4):
        assert query.fetch_all(ids=keys[:count]) == asked[:count]
    of_foreign_key = PreparedQuery(
        lambda: ApprovalRequest.objects.filter(proposal_id__any=IDS)
    )
    assert len(of_foreign_key.fetch_all(ids=keys)) == 3


def test_it_is_compiled_once(
    asked: list[Proposal], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, compile_ = [], SQLCompiler.as_sql

    def counted(self: SQLCompiler, *args: Any, **more: Any) -> Any:
        compiled.append(self)
        return compile_(self, *args, **more)

    monkeypatch.setattr(SQLCompiler, "as_sql", counted)
    query = PreparedQuery(lambda: Proposal.objects.filter(pk=ID))
    for proposal in asked:
        assert query.fetch_first(pk=proposal.pk) == proposal
    assert len(compiled) == 1


def test_one_or_none_or_the_only_one(asked: list[Proposal]) -> None:
    query = PreparedQuery(lambda: Proposal.objects.filter(agent=Parameter("agent")))
    assert query.fetch_first(agent=AGENT) in asked
    assert query.fetch_first(agent="nobody") is None
    for agent in (AGENT, "nobody"):
        with pytest.raises(ObjectDoesNotExist):
            query.fetch_one(agent=agent)


def test_a_row_is_built_from_the_columns_of_its_model(asked: list[Proposal]) -> None:
    request, tool = ModelColumns(ApprovalRequest, "r"), ModelColumns(Tool, "t")
    statement = Statement(
        f"SELECT {request.text}, {tool.text} FROM reviews_approvalrequest AS r"
        " LEFT JOIN policies_tool AS t ON t.name = %(tool)s"
        " WHERE r.proposal_id = %(pk)s"
    )
    expected = ApprovalRequest.objects.get(proposal=asked[0].pk)
    row = statement.fetch_one(pk=asked[0].pk, tool="pay")
    assert state(request.build_row(row[: request.count])) == state(expected)
    known = Tool.objects.get(name="pay")
    assert state(tool.build_row(row[request.count :])) == state(known)
    row = statement.fetch_one(pk=asked[0].pk, tool="none")
    assert tool.build_row(row[request.count :]) is None
    assert Queue.objects.filter(pk=expected.queue_id).exists()


class TestUpdate:
    def test_it_changes_the_rows_of_its_query_and_counts_them(self, gate: Gate) -> None:
        for number, name in enumerate("abc"):
            Heartbeat.objects.create(name=name, at=NOON + timedelta(hours=number))
        delay = PreparedUpdate(
            lambda: (
                Heartbeat.objects.filter(at__lt=Parameter("before")),
                {"at": F("at") + Parameter("wait", DurationField())},
            )
        )
        two = NOON + timedelta(hours=2)
        assert delay.execute(before=two, wait=timedelta(minutes=1)) == 2
        assert delay.execute(before=NOON, wait=timedelta(minutes=1)) == 0
        beats = Heartbeat.objects.filter(name__in="abc").order_by("name")
        assert [beat.at - NOON for beat in beats] == [
            timedelta(minutes=1),
            timedelta(hours=1, minutes=1),
            timedelta(hours=2),
        ]

    def test_it_is_compiled_once(
        self, gate: Gate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        drop = PreparedUpdate(
            lambda: (Queue.objects.filter(pk=ID), {"title": Parameter("title")})
        )
        queue = Queue.objects.earliest("pk")
        assert drop.execute(pk=queue.pk, title="one") == 1
        monkeypatch.setattr(SQLUpdateCompiler, "as_sql", None)
        assert drop.execute(pk=queue.pk, title="%s") == 1
        queue.refresh_from_db()
        assert queue.title == "%s"
