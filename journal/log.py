"""The audit log: every change appends a record in the transaction that makes it.

A record is the exact bytes of its leaf (gate.md section 8, docs/log-record.schema.json)
and is never updated. Appending takes no lock; the sequencer assigns the order later.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, ParamSpec

from psycopg.types.json import Jsonb

from . import canonical, transactions
from .bulk_insert import insert_rows
from .models import LogPayload, LogRecord

VERSION = 1
SALT_BYTES = 32
_KIND = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_CHUNK = 1000
_RECORD_COLUMNS = {
    "kind": "text",
    "at": "timestamptz",
    "leaf": "bytea",
} | dict.fromkeys(
    ("proposal", "request", "agent", "thread", "actor_kind", "actor_id"), "text"
)
_PAYLOAD_COLUMNS = {"record_id": "bigint", "salt": "bytea", "values": "jsonb"}

_Members = ParamSpec("_Members")


class Actor(NamedTuple):
    """Who made a change. `id` is an opaque id, never a name or an address, and is empty
    for the system."""

    kind: Literal["agent", "person", "system"]
    id: str = ""


SYSTEM = Actor("system")


@dataclass(frozen=True, slots=True)
class Entry:
    """The content of one record. A field that is left out is null in the leaf.

    `kind` is dotted lower case. `data` is readable in the leaf. `private` holds what a
    person wrote or what names a person: the leaf has only its HMAC, and LogPayload has
    the text and the salt. `agent` and `thread` are not in the leaf; they are columns by
    which pages find the record.
    """

    kind: str
    _: KW_ONLY
    actor: Actor
    at: datetime
    proposal: str = ""
    revision: int | None = None
    request: str = ""
    version: int | None = None
    from_: str = ""
    to: str = ""
    action_hash: str = ""
    policy: Any = None
    verdict: str = ""
    steps: Sequence[Any] | None = None
    data: Mapping[str, Any] | None = None
    private: Mapping[str, Any] | None = None
    agent: str = ""
    thread: str = ""


def append_many(entries: Iterable[Entry]) -> list[LogRecord]:
    """Add one record per entry, in the given order, with one INSERT per 1,000.

    Raises `ValueError` for a kind, time or value that a leaf cannot carry.
    Caller holds a transaction.
    """
    transactions.require_transaction("Writing the log")
    built = [_build_record(entry) for entry in entries]
    for start in range(0, len(built), _CHUNK):
        _insert_records(built[start : start + _CHUNK])
    return [record for record, _ in built]


def _build_append(
    entry: Callable[_Members, Entry],
) -> Callable[_Members, LogRecord]:
    def append_one(*args: _Members.args, **members: _Members.kwargs) -> LogRecord:
        """Add one record: `append(kind, actor=..., at=..., ...)`, with the fields of
        `Entry`.

        One INSERT, and a second one for private values. Caller holds a transaction.
        """
        return append_many([entry(*args, **members)])[0]

    return append_one


append = _build_append(Entry)


def compute_private_mac(salt: bytes, value: Any) -> str:
    """The HMAC that represents a private value in a leaf. Anyone who has the salt and
    the value can verify it."""
    mac = hmac.digest(salt, canonical.encode(value), "sha256")
    return f"hmac-sha256:{mac.hex()}"


def _insert_records(built: Sequence[tuple[LogRecord, LogPayload | None]]) -> None:
    rows = [[getattr(record, name) for name in _RECORD_COLUMNS] for record, _ in built]
    returned = insert_rows(
        "journal_logrecord", _RECORD_COLUMNS, rows, returning="id, xid"
    )
    for (record, _), (pk, xid) in zip(built, returned, strict=True):
        record.pk, record.xid, record._state.adding = pk, str(xid), False
    payloads = [payload for _, payload in built if payload]
    if payloads:
        rows = [[p.record.pk, p.salt, Jsonb(p.values)] for p in payloads]
        insert_rows("journal_logpayload", _PAYLOAD_COLUMNS, rows, returning="record_id")


def _build_record(entry: Entry) -> tuple[LogRecord, LogPayload | None]:
    if not _KIND.fullmatch(entry.kind):
        raise ValueError(f"A kind is dotted lower case, not {entry.kind!r}.")
    data: dict[str, Any] = dict(entry.data or {})
    private = dict(entry.private or {})
    salt = secrets.token_bytes(SALT_BYTES)
    if data.keys() & private.keys():
        raise ValueError("A member of data cannot be plain and private.")
    data.update(
        {name: compute_private_mac(salt, value) for name, value in private.items()}
    )
    record = LogRecord(
        kind=entry.kind,
        at=entry.at,
        leaf=canonical.encode(_build_leaf(entry, data)),
        proposal=entry.proposal,
        request=entry.request,
        agent=entry.agent,
        thread=entry.thread,
        actor_kind=entry.actor.kind,
        actor_id=entry.actor.id,
    )
    if not private:
        return record, None
    return record, LogPayload(record=record, salt=salt, values=private)


def _build_leaf(entry: Entry, data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "v": VERSION,
        "kind": entry.kind,
        "at": _format_time(entry.at),
        "actor": {"kind": entry.actor.kind, "id": entry.actor.id or None},
        "proposal": entry.proposal or None,
        "revision": entry.revision,
        "request": entry.request or None,
        "version": entry.version,
        "from": entry.from_ or None,
        "to": entry.to or None,
        "action_hash": entry.action_hash or None,
        "policy": entry.policy,
        "verdict": entry.verdict or None,
        "steps": entry.steps,
        "data": data or None,
    }


def _format_time(at: datetime) -> str:
    """RFC 3339 in UTC with microseconds and Z. Raises ValueError for a naive time."""
    if at.tzinfo is None:
        raise ValueError("A record's time needs its zone.")
    moment = at.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="microseconds") + "Z"
