"""Records of the audit log in bulk: copies of those of real actions, with ids, hashes,
times and salts of their own, so that each has the bytes and the HMACs of a real one.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg

from journal import canonical, clock, ids, log
from journal.models import LogPayload, LogRecord
from reviews.models import ApprovalRequest, Execution, Grant, Revision

ACTIONS_A_THREAD = 10
_RECORD = (
    "COPY journal_logrecord (id, kind, at, leaf, proposal, request, agent, thread,"
    " actor_kind, actor_id) FROM STDIN"
)
_PAYLOAD = "COPY journal_logpayload (record_id, salt, values) FROM STDIN"
# What is drawn is never drawn again, as in a real append.
_DRAW = """
SELECT setval('journal_logrecord_id_seq',
              nextval('journal_logrecord_id_seq') + %s - 1)
"""


@dataclass(frozen=True, slots=True)
class PatternRecord:
    """A record of a real action. `texts` has each private member with its canonical
    bytes and its HMAC; `columns` are the other columns that no copy changes."""

    leaf: str
    at: str
    texts: tuple[tuple[str, Any, bytes, str], ...]
    request: bool
    columns: dict[str, str]


@dataclass(frozen=True, slots=True)
class ActionPattern:
    """The records of a finished action in their order, and the ids in their leaves."""

    records: tuple[PatternRecord, ...]
    ids: dict[str, str]
    hashes: tuple[str, ...]


def load_action(proposal: str) -> ActionPattern:
    """The pattern of a finished action, from its rows."""
    request = ApprovalRequest.objects.get(proposal_id=proposal)
    execution = Execution.objects.get(proposal_id=proposal)
    grant = Grant.objects.get(proposal_id=proposal)
    rows = LogRecord.objects.filter(proposal=proposal).order_by("pk")
    payloads = LogPayload.objects.in_bulk([row.pk for row in rows])
    hashes = Revision.objects.filter(proposal_id=proposal)
    return ActionPattern(
        tuple(_build_record(row, payloads.get(row.pk)) for row in rows),
        {"p": proposal, "r": request.pk, "g": grant.pk, "x": execution.pk},
        tuple(hashes.values_list("action_hash", flat=True)),
    )


def _build_record(row: LogRecord, payload: LogPayload | None) -> PatternRecord:
    texts: tuple[tuple[str, Any, bytes, str], ...] = ()
    if payload is not None:
        salt = bytes(payload.salt)
        texts = tuple(
            (name, value, canonical.encode(value), log.compute_private_mac(salt, value))
            for name, value in payload.values.items()
        )
    columns = {
        name: getattr(row, name) for name in ("kind", "agent", "actor_kind", "actor_id")
    }
    leaf = bytes(row.leaf).decode()
    return PatternRecord(
        leaf, log.format_time(row.at), texts, bool(row.request), columns
    )


def write_records(
    connection: psycopg.Connection[Any], patterns: list[ActionPattern], actions: int
) -> int:
    """Add the records of so many actions in one transaction; return how many."""
    at = clock.now().astimezone(UTC)
    run = secrets.token_hex(4)
    chosen = [patterns[number % len(patterns)] for number in range(actions)]
    count = sum(len(pattern.records) for pattern in chosen)
    with connection.transaction():
        row = connection.execute(_DRAW, [count]).fetchone()
        assert row is not None
        copies = list(_copy_records(chosen, row[0] - count + 1, at, run))
        with connection.cursor().copy(_RECORD) as into:
            for record, _ in copies:
                into.write_row(record)
        with connection.cursor().copy(_PAYLOAD) as into:
            for record, payload in copies:
                if payload is not None:
                    into.write_row((record[0], *payload))
    return count


def _copy_records(
    chosen: list[ActionPattern], first: int, at: datetime, run: str
) -> Iterator[tuple[tuple[Any, ...], tuple[bytes, str] | None]]:
    moment, pk = log.format_time(at), first
    for number, pattern in enumerate(chosen):
        names = {prefix: ids.new(prefix) for prefix in pattern.ids}
        renamed = [(old, names[prefix]) for prefix, old in pattern.ids.items()]
        renamed += [(old, f"sha256:{secrets.token_hex(32)}") for old in pattern.hashes]
        thread = f"{run}-{number // ACTIONS_A_THREAD}"
        for record in pattern.records:
            leaf, salt = record.leaf.replace(record.at, moment), secrets.token_bytes(32)
            for old, new in renamed:
                leaf = leaf.replace(old, new)
            for _, _, encoded, mac in record.texts:
                other = hmac.digest(salt, encoded, "sha256").hex()
                leaf = leaf.replace(mac, f"hmac-sha256:{other}")
            values = {name: value for name, value, _, _ in record.texts}
            columns = record.columns
            yield (
                (
                    pk,
                    columns["kind"],
                    moment,
                    leaf.encode(),
                    names["p"],
                    names["r"] if record.request else "",
                    columns["agent"],
                    thread,
                    columns["actor_kind"],
                    columns["actor_id"],
                ),
                (salt, json.dumps(values)) if values else None,
            )
            pk += 1
