"""A record is exact bytes in a published form, written with what it tells of."""

from __future__ import annotations

import hmac
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.db import connection, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from journal import canonical, log
from journal.models import LogPayload, LogRecord
from tests.journal.test_notify import listening

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs" / "log-record.schema.json").read_text()
)
AT = datetime(2026, 3, 1, 9, 30, 0, 120, tzinfo=UTC)
PERSON = log.Actor("person", "u-1")
HASH = canonical.digest(b"action")

FULL = log.Entry(
    "request.decided",
    actor=PERSON,
    at=AT,
    proposal="p-1",
    revision=2,
    request="r-1",
    version=3,
    from_="pending",
    to="authorized",
    action_hash=HASH,
    policy=7,
    verdict="approve",
    steps=[{"role": "supervisor", "required": 2}],
    data={"tier": "escalate", "seconds": 41},
    private={"reason": "The courier lost it, says Ana."},
    agent="riley",
    thread="order_78291",
)
LEAST = log.Entry("stop.raised", actor=log.SYSTEM, at=AT)


def appended(*args, **members) -> LogRecord:
    """The record that `log.append` adds."""
    log.append(*args, **members)
    return LogRecord.objects.latest("pk")


@pytest.fixture
def valid():
    return jsonschema_rs.validator_for(SCHEMA).is_valid


@pytest.mark.django_db
@pytest.mark.parametrize("entry", [FULL, LEAST], ids=["full", "least"])
def test_an_appended_leaf_is_canonical_and_satisfies_the_schema(entry, valid):
    log.append_many([entry])
    leaf = bytes(LogRecord.objects.get().leaf)
    assert canonical.encode(canonical.parse(leaf)) == leaf
    assert valid(json.loads(leaf))


@pytest.mark.django_db
def test_a_leaf_has_exactly_the_members_of_the_contract():
    log.append_many([FULL])
    leaf = json.loads(bytes(LogRecord.objects.get().leaf))
    reason = leaf["data"].pop("reason")
    assert reason.startswith("hmac-sha256:")
    assert leaf == {
        "v": 1,
        "kind": "request.decided",
        "at": "2026-03-01T09:30:00.000120Z",
        "actor": {"kind": "person", "id": "u-1"},
        "proposal": "p-1",
        "revision": 2,
        "request": "r-1",
        "version": 3,
        "from": "pending",
        "to": "authorized",
        "action_hash": HASH,
        "policy": 7,
        "verdict": "approve",
        "steps": [{"role": "supervisor", "required": 2}],
        "data": {"tier": "escalate", "seconds": 41},
    }


@pytest.mark.django_db
def test_what_is_left_out_is_null():
    record = appended("stop.raised", actor=log.SYSTEM, at=AT)
    leaf = json.loads(bytes(record.leaf))
    assert {k for k, v in leaf.items() if v is not None} == {"v", "kind", "at", "actor"}
    assert leaf["actor"] == {"kind": "system", "id": None}


@pytest.mark.django_db
def test_private_text_is_in_the_payload_and_its_proof_in_the_leaf():
    record = appended(
        "message.asked", actor=PERSON, at=AT, private={"text": "Ana?", "who": ["a"]}
    )
    payload = LogPayload.objects.get(record=record)
    salt = bytes(payload.salt)
    leaf = json.loads(bytes(record.leaf))
    assert payload.values == {"text": "Ana?", "who": ["a"]}
    assert b"Ana" not in bytes(record.leaf)
    expected = hmac.new(salt, b'"Ana?"', "sha256").hexdigest()
    assert leaf["data"]["text"] == f"hmac-sha256:{expected}"
    assert leaf["data"]["who"] == log.compute_private_mac(salt, ["a"])


@pytest.mark.django_db
def test_equal_private_values_of_two_records_do_not_look_equal():
    one, two = (
        appended("message.asked", actor=PERSON, at=AT, private={"text": "yes"})
        for _ in range(2)
    )
    assert json.loads(bytes(one.leaf))["data"] != json.loads(bytes(two.leaf))["data"]


@pytest.mark.django_db
def test_the_row_repeats_what_pages_look_for():
    log.append_many([FULL])
    record = LogRecord.objects.get()
    found = (record.kind, record.proposal, record.request, record.agent, record.thread)
    assert found == ("request.decided", "p-1", "r-1", "riley", "order_78291")
    assert (record.at, record.actor_kind, record.actor_id) == (AT, "person", "u-1")


@pytest.mark.django_db
def test_times_are_said_in_utc():
    there = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    record = appended("stop.raised", actor=log.SYSTEM, at=there)
    assert json.loads(bytes(record.leaf))["at"] == "2026-03-01T09:30:00.000120Z"


@pytest.mark.django_db
def test_records_and_their_payloads_are_one_statement():
    with CaptureQueriesContext(connection) as plain:
        log.append("stop.raised", actor=log.SYSTEM, at=AT)
    with CaptureQueriesContext(connection) as private:
        log.append_many([FULL] * 50)
    assert (len(plain), len(private)) == (1, 1)
    assert LogPayload.objects.count() == 50


@pytest.mark.django_db
def test_many_records_keep_their_order_and_their_payloads():
    entries = [
        log.Entry("stop.raised", actor=PERSON, at=AT, private={"n": n})
        for n in range(30)
    ]
    log.append_many(entries)
    assert [r.payload.values["n"] for r in LogRecord.objects.order_by("pk")] == list(
        range(30)
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "kind", ["", "opened", "Request.opened", "a.b ", "a..b", "1.a"]
)
def test_a_kind_is_dotted_lower_case(kind):
    with pytest.raises(ValueError, match="dotted lower case"):
        log.append(kind, actor=log.SYSTEM, at=AT)


@pytest.mark.django_db
def test_a_member_is_plain_or_private():
    with pytest.raises(ValueError, match="plain and private"):
        log.append("a.b", actor=PERSON, at=AT, data={"x": 1}, private={"x": 2})


@pytest.mark.django_db
def test_a_time_needs_its_zone():
    with pytest.raises(ValueError, match="zone"):
        log.append("a.b", actor=PERSON, at=AT.replace(tzinfo=None))


@pytest.mark.django_db
def test_an_unknown_member_is_refused():
    with pytest.raises(TypeError):
        log.append("a.b", actor=PERSON, at=AT, colour="red")  # type: ignore[call-arg]


@pytest.mark.django_db(transaction=True)
def test_a_record_needs_the_transaction_of_its_cause():
    with pytest.raises(TransactionManagementError):
        log.append("a.b", actor=PERSON, at=AT)
    assert not LogRecord.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_change_leaves_no_record():
    with transaction.atomic():
        log.append("a.b", actor=PERSON, at=AT)
        transaction.set_rollback(True)
    assert not LogRecord.objects.exists()


@pytest.mark.django_db
def test_erasing_a_payload_leaves_the_leaf_as_it_was():
    record = appended("a.b", actor=PERSON, at=AT, private={"text": "Ana"})
    LogPayload.objects.filter(record=record).delete()
    assert bytes(LogRecord.objects.get(pk=record.pk).leaf) == record.leaf


@pytest.mark.parametrize(
    ("kind", "members", "callers"),
    [
        ("person.deactivated", {"data": {"person": "u-2"}}, ["person:u-2"]),
        ("person.token_revoked", {"data": {"prefix": "x"}}, ["person:u-1"]),
        ("authority.confirmed", {"data": {"person": "u-2"}}, ["person:u-2"]),
        (
            "substitution.ended",
            {"data": {"person": "u-2", "substitute": "u-3"}},
            ["person:u-2", "person:u-3"],
        ),
        ("agent.key_revoked", {"agent": "riley"}, ["agent:riley"]),
        ("request.decided", {"agent": "riley", "data": {"person": "u-2"}}, []),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_a_change_of_access_is_announced_to_whom_it_concerns(
    kind: str, members: dict[str, Any], callers: list[str]
) -> None:
    with listening() as heard:
        with transaction.atomic():
            log.append(kind, actor=PERSON, at=AT, **members)
            assert heard() == []
        assert sorted(heard()) == callers
