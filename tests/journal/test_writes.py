"""Writes without the ORM: values arrive as they are, guards hold, and a unit of work
sends many as one statement without a read that misses one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.apps.registry import Apps
from django.contrib.postgres.fields import ArrayField
from django.db import DatabaseError, connection, models, transaction
from django.db.models.functions import Now
from django.db.transaction import TransactionManagementError

from journal import writes
from journal.errors import Conflict
from journal.writes import Guard

AT = datetime(2026, 3, 1, 9, 30, 0, 120, tzinfo=UTC)
# What ends a string, an array or a statement where it is not taken as a value.
WORDS = (
    "",
    "NULL",
    "{}",
    '"',
    "'",
    "\\",
    "\\u0041",
    "a,b",
    "%s",
    "$1",
    "\u202e\u00e9\U0001f600",
    "x;--",
)


RENAME = """
UPDATE journal_parcel SET said = %(said)s, "count" = %(count)s
WHERE id = %(pk)s AND said <> %(said)s RETURNING id
"""


class Parcel(models.Model):
    """A row with a column of every type that the product's tables have."""

    said = models.TextField()
    status = models.CharField(max_length=8)
    raw = models.BinaryField(null=True)
    at = models.DateTimeField(null=True)
    took = models.DurationField(default=timedelta)
    more = models.JSONField(default=dict)
    words = ArrayField(models.CharField(max_length=20), default=list)
    code = models.UUIDField(null=True)
    weight = models.FloatField(default=0)
    count = models.BigIntegerField(default=0)
    made_at = models.DateTimeField(db_default=Now())
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT)

    class Meta:
        app_label = "journal"
        apps = Apps()  # of its own: no migration makes this table

    def __str__(self) -> str:
        return self.said


PARCELS: Any = Parcel._default_manager


@pytest.fixture(autouse=True)
def _table(db: None) -> Any:
    with connection.schema_editor() as editor:
        editor.create_model(Parcel)
        editor.deferred_sql.clear()


@pytest.fixture
def sent(django_assert_num_queries: Any) -> Any:
    return django_assert_num_queries


def parcel(said: str = "", **values: Any) -> Parcel:
    return Parcel(**{"said": said, "status": "new", **values})


def stored() -> list[str]:
    return list(PARCELS.order_by("pk").values_list("said", flat=True))


@pytest.mark.parametrize("count", [1, 2, 60])
def test_every_value_arrives_as_it_is_and_in_its_place(count: int, sent: Any) -> None:
    given = [
        parcel(
            WORDS[n % len(WORDS)],
            raw=bytes([n, 0, 39, 92]),
            at=AT + timedelta(seconds=n),
            took=timedelta(days=n, microseconds=7),
            more={"w": [WORDS[n % len(WORDS)], n, None, 0.1]},
            words=list(WORDS),
            code=UUID(int=n),
            weight=n / 3,
            count=2**62 + n,
        )
        for n in range(count)
    ]
    with sent(1):
        writes.insert_rows(given)
    names = [one.attname for one in Parcel._meta.concrete_fields]
    names.remove("made_at")
    for row in given:
        found = PARCELS.get(pk=row.pk)
        found.raw = bytes(found.raw)
        assert [getattr(found, n) for n in names] == [getattr(row, n) for n in names]
        assert found.made_at is not None
    assert [row.pk for row in given] == sorted(row.pk for row in given)


def test_nothing_given_is_nothing_sent(sent: Any) -> None:
    with sent(0):
        writes.insert_rows([])


def test_a_value_without_a_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        writes.insert_rows([parcel(more={"x": object()})])


def test_an_update_sets_only_the_rows_in_hand() -> None:
    rows = [parcel(word) for word in "abc"]
    writes.insert_rows(rows)
    changes = {"status": "sent", "at": AT, "raw": b"\\x", "parent": rows[2]}
    writes.update_rows(rows[:2], changes, source="new")
    stored = list(PARCELS.order_by("pk"))
    assert [row.status for row in stored] == ["sent", "sent", "new"]
    assert [row.at for row in stored] == [AT, AT, None]
    assert [row.parent_id for row in stored] == [rows[2].pk, rows[2].pk, None]
    assert bytes(stored[0].raw) == b"\\x"


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("source", "guard"),
    [
        ("old", writes.NO_GUARD),
        ("new", Guard(same=("said", "count"))),
        ("new", Guard(condition="stored.at > clock_timestamp()")),
    ],
    ids=["status", "same", "condition"],
)
def test_a_row_that_is_not_as_expected_is_a_conflict(
    count: int, source: str, guard: Guard
) -> None:
    rows = [parcel("read", at=AT) for _ in range(count)]
    writes.insert_rows(rows)
    PARCELS.filter(pk=rows[-1].pk).update(said="changed")
    with pytest.raises(Conflict), transaction.atomic():
        writes.update_rows(rows, {"status": "sent"}, source=source, guard=guard)
    assert not PARCELS.filter(status="sent").exists()


def test_a_guard_that_holds_lets_the_update_through() -> None:
    rows = [parcel("a", count=1), parcel("b", count=2)]
    writes.insert_rows(rows)
    guard = Guard(same=("said", "count"), condition="stored.at IS NULL")
    writes.update_rows(rows, {"status": "sent"}, source="new", guard=guard)
    assert PARCELS.filter(status="sent").count() == 2


def test_a_unit_of_work_is_one_statement(sent: Any) -> None:
    first = parcel("first")
    writes.insert_rows([first])
    later = [parcel("second"), parcel("third")]
    with sent(1), writes.unit_of_work():
        writes.insert_rows(later[:1])
        writes.update_rows([first], {"status": "sent"}, source="new")
        writes.insert_rows(later[1:])
    assert [row.said for row in PARCELS.order_by("pk")] == [
        "first",
        "second",
        "third",
    ]
    assert [PARCELS.get(pk=row.pk).said for row in later] == ["second", "third"]


def test_a_read_within_it_finds_what_was_written() -> None:
    with writes.unit_of_work():
        writes.insert_rows([parcel("one")])
        assert stored() == ["one"]
        writes.insert_rows([parcel("two")])
    assert stored() == ["one", "two"]


def test_a_row_written_twice_gets_both_writes() -> None:
    row = parcel("one", count=1)
    writes.insert_rows([row])
    with writes.unit_of_work():
        writes.update_rows([row], {"status": "sent"}, source="new")
        writes.update_rows([row], {"status": "lost", "count": 2}, source="sent")
    assert PARCELS.filter(status="lost", count=2).exists()


def test_a_statement_of_ones_own_is_one_of_the_writes(sent: Any) -> None:
    row = parcel("one")
    writes.insert_rows([row])
    with sent(1), writes.unit_of_work():
        writes.insert_rows([parcel("two")])
        writes.execute_write(
            (("renamed", RENAME),), {"said": "%(said)s $1", "count": 5, "pk": row.pk}
        )
    assert sorted(stored()) == ["%(said)s $1", "two"]


def send_together(row: Any) -> None:
    with writes.unit_of_work():
        writes.insert_rows([parcel("two")])
        writes.update_rows([row], {"status": "sent"}, source="old")


def test_a_key_that_is_needed_at_once_can_be_had(sent: Any) -> None:
    with sent(2), writes.unit_of_work():
        rows = [parcel("one")]
        writes.insert_rows(rows)
        assert not rows[0].pk
        writes.send_pending()
        assert Parcel(pk=rows[0].pk) == rows[0]
        writes.insert_rows([parcel("two")])
    assert stored() == ["one", "two"]


def test_two_statements_of_one_form_do_not_meet(sent: Any) -> None:
    rows = [parcel("one"), parcel("two")]
    writes.insert_rows(rows)
    with sent(2), writes.unit_of_work():
        for row in rows:
            values = {"said": f"new {row.pk}", "count": 1, "pk": row.pk}
            writes.execute_write((("renamed", RENAME),), values)
    assert stored() == [f"new {row.pk}" for row in rows]


def test_a_conflict_ends_the_block_and_writes_nothing() -> None:
    row = parcel("one")
    writes.insert_rows([row])
    with pytest.raises(Conflict), transaction.atomic():
        send_together(row)
    assert stored() == ["one"]


def test_an_error_in_the_block_sends_nothing(sent: Any) -> None:
    with sent(0), pytest.raises(AttributeError):
        send_together(None)
    with writes.unit_of_work():
        writes.insert_rows([parcel("three")])
    assert stored() == ["three"]


def test_what_the_database_refuses_ends_the_unit() -> None:
    with pytest.raises(DatabaseError), transaction.atomic(), writes.unit_of_work():
        writes.insert_rows([parcel("one", status="far too long")])
    assert stored() == []


def test_a_block_within_a_block_is_part_of_it(sent: Any) -> None:
    with sent(1), writes.unit_of_work():
        writes.insert_rows([parcel("one")])
        with writes.unit_of_work():
            writes.insert_rows([parcel("two")])
    assert stored() == ["one", "two"]


@pytest.mark.django_db(transaction=True)
def test_it_needs_a_transaction() -> None:
    with pytest.raises(TransactionManagementError), writes.unit_of_work():
        pass
