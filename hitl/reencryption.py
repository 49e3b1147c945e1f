"""Encrypts all stored values under the present DATA_KEY and names outcomes under the
present TAG_KEY, while the gate runs.

A value that has the present key is left alone, so that a run that was cut short is
simply repeated. Rows are walked in pieces, by their keys, however many there are. Each
piece locks its rows and skips those that somebody else holds; a round that skipped any
is followed by another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db.models import BinaryField, Count, Func, Q, QuerySet, Value

from agents import acknowledgements
from agents.models import Acknowledgement, Delivery
from journal import clock, encryption, known_keys
from journal.encryption import KEY_ID_BYTES, STORED, DecryptionError
from journal.operations import operation
from policies.models import StandingGrant
from reviews.choices import FINISHED, UNGRANTED
from reviews.grants import approvers
from reviews.models import ApprovalRequest, Proposal

from .locks import lock_free_rows
from .stored_values import STORED_VALUES, StoredValue

BATCH = 50
ROUNDS = 5
HEADER_BYTES = len(STORED) + KEY_ID_BYTES
Progress = Callable[[str, int, int], None]


class _Header(Func):
    """The first bytes of a value: its version and the id of its key."""

    function = "SUBSTRING"
    template = f"%(function)s(%(expressions)s FROM 1 FOR {HEADER_BYTES})"
    output_field = BinaryField()


@dataclass
class Rotation:
    """What a run did and found, by column."""

    written: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    busy: Counter[str] = field(default_factory=Counter)  # locked in every round
    renamed: int = 0  # acknowledgements that have an id under the present TAG_KEY too
    # What still needs each former key: (variable, key id) to words.
    needed: dict[tuple[str, str], list[str]] = field(default_factory=dict)


def rotate_keys(progress: Progress) -> Rotation:
    """Encrypt and name everything again, and find out which former keys are needed
    still."""
    done = Rotation()
    for stored in STORED_VALUES:
        _rotate_column(stored, done, progress)
    _rename_outcomes(done, progress)
    _find_needs(done)
    return done


def _list_old(stored: StoredValue) -> Any:
    header = STORED + encryption.identify_key(encryption.list_data_keys()[0])
    rows = stored.model._default_manager.filter(**{f"{stored.column}__isnull": False})
    return rows.annotate(header=_Header(stored.column)).exclude(
        header=Value(header, output_field=BinaryField())
    )


def _rotate_column(stored: StoredValue, done: Rotation, progress: Progress) -> None:
    total = _list_old(stored).count()
    progress(stored.name, 0, total)
    for _ in range(ROUNDS):
        unreadable = skipped = 0
        for keys in _walk(_list_old(stored)):
            written, faulty = encrypt_batch(stored, keys)
            done.written[stored.name] += written
            unreadable += faulty
            skipped += len(keys) - written - faulty
            progress(stored.name, done.written[stored.name], total)
        if not skipped:
            break
    done.unreadable[stored.name] = unreadable
    done.busy[stored.name] = max(0, _list_old(stored).count() - unreadable)


def _walk(rows: QuerySet[Any], column: str = "pk") -> Iterator[list[Any]]:
    """The values of this column in pieces, each after the last one of the piece
    before."""
    rows, piece = rows.order_by(column).values_list(column, flat=True), list[Any]()
    while piece := list(
        (rows.filter(**{f"{column}__gt": piece[-1]}) if piece else rows)[:BATCH]
    ):
        yield piece


@operation(
    locks="rows of one table by id, without waiting",
    writes="Thread, Endpoint, Execution, Dataset, EvidenceFile, EvidencePicture (one"
    " encrypted column)",
)
def encrypt_batch(stored: StoredValue, keys: list[Any]) -> tuple[int, int]:
    """Encrypt the values of these rows under the present key. Returns how many it
    wrote, and how many cannot be read. Rows that are locked are left for later."""
    rows = _list_old(stored).filter(pk__in=keys).order_by("pk")
    written = unreadable = 0
    for row in lock_free_rows(rows):
        try:
            value = encryption.encrypt_again(
                getattr(row, stored.column), stored.bind(row)
            )
        except DecryptionError:
            unreadable += 1
            continue
        same = stored.model._default_manager.filter(pk=row.pk)
        written += same.update(**{stored.column: value})
    return written, unreadable


def _rename_outcomes(done: Rotation, progress: Progress) -> None:
    """Give each acknowledgement that only a former TAG_KEY can find a second row, under
    the present key: the first one never changes."""
    if len(encryption.list_tag_keys()) == 1:
        return
    rows, walked = Acknowledgement.objects.all(), 0
    total = rows.aggregate(total=Count("proposal", distinct=True))["total"]
    for names in _walk(rows.distinct(), "proposal"):
        done.renamed += rename_batch(names)
        walked += len(names)
        progress("agents_acknowledgement", walked, max(total, walked))


@operation(writes="Acknowledgement")
def rename_batch(proposals: list[str]) -> int:
    """Write an acknowledgement under the present TAG_KEY beside each one of these
    proposals that has none. Returns how many."""
    new = []
    for proposal in Proposal.objects.filter(pk__in=proposals):
        rows = {
            row.pk: row for row in Acknowledgement.objects.filter(proposal=proposal)
        }
        for present, *former in acknowledgements.list_possible_ids(proposal):
            former_row = next(
                (rows[outcome] for outcome in former if outcome in rows), None
            )
            if former_row is not None and present not in rows:
                new.append(
                    Acknowledgement(
                        outcome=present,
                        proposal=proposal.pk,
                        agent_id=former_row.agent_id,
                        by=former_row.by,
                        at=former_row.at,
                    )
                )
    Acknowledgement.objects.bulk_create(new, ignore_conflicts=True)
    return len(new)


def _find_needs(done: Rotation) -> None:
    """For each former key of the settings, what needs it still; nothing: it can be
    dropped."""
    rings = {ring.name: ring for ring in known_keys.list_rings()}
    for key in encryption.list_data_keys()[1:]:
        needs = [*_count_values(key), *_count_seals(key)]
        done.needed["DATA_KEY", known_keys.format_id(key)] = needs
    for position, key in enumerate(rings["TAG_KEY"].others, start=1):
        needs = [*_count_webhooks(position), *_count_outcomes(key)]
        done.needed["TAG_KEY", known_keys.format_id(key)] = needs


def _count_values(key: bytes) -> Iterator[str]:
    header = Value(STORED + encryption.identify_key(key), output_field=BinaryField())
    for stored in STORED_VALUES:
        rows = _list_old(stored).filter(header=header)
        if count := rows.count():
            yield f"{count} values in {stored.name}"


def _count_seals(key: bytes) -> Iterator[str]:
    """Votes and standing grants that count still. Their rows never change, so that they
    keep their seal until they end."""
    ended = Q(status__in=UNGRANTED) | Q(proposal__executions__status__in=FINISHED)
    requests = list(ApprovalRequest.objects.exclude(ended))
    votes = sum(
        approvers.is_sealed_by(vote, ballot, key)
        for start in range(0, len(requests), BATCH)
        for ballot in approvers.load_ballots(requests[start : start + BATCH])
        for vote in ballot.votes
    )
    if votes:
        yield f"{votes} votes on requests that have not ended"
    grants = StandingGrant.objects.filter(
        expires_at__gt=clock.now(), revoked_at__isnull=True
    )
    if count := sum(grant.is_sealed_by(key) for grant in grants):
        yield f"{count} standing grants that have not ended"


def _count_webhooks(position: int) -> Iterator[str]:
    """Outcomes under the former TAG_KEY of this position that are on their way to
    agents, or that a person may send again."""
    count = 0
    rows = Delivery.objects.filter(status__in=acknowledgements.UNDELIVERED)
    for names in _walk(rows.distinct(), "proposal"):
        sent = set(rows.filter(proposal__in=names).values_list("event", flat=True))
        for proposal in Proposal.objects.filter(pk__in=names):
            possible = acknowledgements.list_possible_ids(proposal)
            count += len(sent.intersection(ids[position] for ids in possible))
    if count:
        yield f"{count} outcomes in webhooks that no agent has yet"


def _count_outcomes(key: bytes) -> Iterator[str]:
    """Outcomes that agents may have read, and have not acknowledged."""
    uses = known_keys.list_uses("TAG_KEY")
    names = [key_id for key_id, _ in uses]
    if (key_id := known_keys.format_id(key)) not in names:
        return
    rows = acknowledgements.filter_unacknowledged(Proposal.objects.all())
    place = names.index(key_id)
    if place:  # older proposals belong to the oldest key
        rows = rows.filter(created_at__gte=uses[place][1])
    if place + 1 < len(uses):
        rows = rows.filter(created_at__lt=uses[place + 1][1])
    if count := rows.count():
        yield f"{count} outcomes that their agents have not acknowledged"


def forget_unneeded(done: Rotation) -> None:
    """Let the database forget the former keys that nothing needs."""
    for (name, key_id), needs in done.needed.items():
        if not needs:
            known_keys.forget_key(name, key_id)
