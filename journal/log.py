"""The audit log: every change appends a record in the transaction that makes it.

A record is the exact bytes of its leaf (docs/log-record.schema.json) and
is never updated. Appending takes no lock; the sequencer assigns the order later.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, ParamSpec

from django.conf import settings

from . import canonical, notify, transactions, writes

VERSION = 1
SALT_BYTES = 32
_KIND = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_CHUNK = 1000
# Records of a change to what a person or an agent may do. Their open pages and waiting
# calls look again at once, whichever operation made the change.
_ACCESS_KINDS = ("person.", "substitution.", "authority.confirmed", "agent.key_")
# The numbers are drawn in the order of the rows, which is the order of the log.
_PARTS = (
    (
        "record_given",
        """
        SELECT nextval('journal_logrecord_id_seq') AS id, given.*
        FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
            kind text, at timestamptz, leaf text, proposal text, request text,
            agent text, thread text, actor_kind text, actor_id text,
            salt bytea, "values" jsonb)
        """,
    ),
    (
        "payload_added",
        """
        INSERT INTO journal_logpayload (record_id, salt, "values")
        SELECT id, salt, "values" FROM record_given WHERE salt IS NOT NULL
        """,
    ),
    (
        "record_added",
        """
        INSERT INTO journal_logrecord (id, kind, at, leaf, proposal, request,
                                       agent, thread, actor_kind, actor_id)
        SELECT id, kind, at, convert_to(leaf, 'UTF8'), proposal, request,
               agent, thread, actor_kind, actor_id
        FROM record_given RETURNING id
        """,
    ),
)

_Members = ParamSpec("_Members")


class Actor(NamedTuple):
    """Who made a change. `id` is opaque, never a name; empty for the system."""

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


def append_many(entries: Iterable[Entry]) -> None:
    """Add one record per entry, in the given order, with one statement per 1,000.
    Raises `ValueError` for a kind, time or value that a leaf cannot carry. Caller holds
    a transaction."""
    transactions.require_transaction("Writing the log")
    given = list(entries)
    built = [_build_row(entry) for entry in given]
    for start in range(0, len(built), _CHUNK):
        writes.insert_values(_PARTS, built[start : start + _CHUNK], key="id")
    if callers := {caller for entry in given for caller in _list_affected(entry)}:
        notify.announce(*callers)


def _list_affected(entry: Entry) -> list[str]:
    """The callers whose access the record changes."""
    if not entry.kind.startswith(_ACCESS_KINDS):
        return []
    if entry.agent:
        return [notify.name_caller("agent", entry.agent)]
    data = entry.data or {}
    people = [data[role] for role in ("person", "substitute") if role in data]
    own = [entry.actor.id] if entry.actor.kind == "person" and not people else []
    return [notify.name_caller("person", person) for person in people or own]


def _build_append(entry: Callable[_Members, Entry]) -> Callable[_Members, None]:
    def append_one(*args: _Members.args, **members: _Members.kwargs) -> None:
        """Add one record: `append(kind, actor=..., at=..., ...)`, with the fields of
        `Entry`. Caller holds a transaction."""
        append_many([entry(*args, **members)])

    return append_one


append = _build_append(Entry)


def compute_private_mac(salt: bytes, value: Any) -> str:
    """The HMAC of a private value, which a leaf has in its place."""
    mac = hmac.digest(salt, canonical.encode(value), "sha256")
    return f"hmac-sha256:{mac.hex()}"


def _build_row(entry: Entry) -> dict[str, Any]:
    if not _KIND.fullmatch(entry.kind):
        raise ValueError(f"A kind is dotted lower case, not {entry.kind!r}.")
    data, private = dict(entry.data or {}), dict(entry.private or {})
    if entry.actor.kind == "person" and settings.COUNTERSEAL.solo:
        data["solo"] = True  # one person does what takes two elsewhere
    row: dict[str, Any] = {
        "kind": entry.kind,
        "at": entry.at,
        "proposal": entry.proposal,
        "request": entry.request,
        "agent": entry.agent,
        "thread": entry.thread,
        "actor_kind": entry.actor.kind,
        "actor_id": entry.actor.id,
    }
    if private:
        if data.keys() & private.keys():
            raise ValueError("A member of data cannot be plain and private.")
        row["salt"] = salt = secrets.token_bytes(SALT_BYTES)
        row["values"] = private
        data.update({n: compute_private_mac(salt, v) for n, v in private.items()})
    row["leaf"] = canonical.encode(_build_leaf(entry, data)).decode()
    return row


def _build_leaf(entry: Entry, data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "v": VERSION,
        "kind": entry.kind,
        "at": format_time(entry.at),
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


def format_time(at: datetime) -> str:
    """RFC 3339 in UTC with microseconds and Z. Raises ValueError for a naive time."""
    if at.tzinfo is None:
        raise ValueError("A record's time needs its zone.")
    moment = at.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="microseconds") + "Z"
