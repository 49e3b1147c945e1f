"""The action hashes that the log recorded for a revision.

Log records never change (docs/invariants.md I28). A hash in the log therefore shows
when a revision's bytes and the hash stored beside them were rewritten together
(docs/invariants.md I18).
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import F, Func, OuterRef, Subquery, TextField, Value
from django.db.models.functions import Cast, Coalesce

from journal.models import LogRecord

# Each revision has exactly one record of these kinds, from the change that made it.
REVISION_RECORDS = ("proposal.submitted", "request.revised", "request.modified")


class _LeafMember(Func):
    """SQL expression: one member of a record's leaf, as text."""

    template = "(convert_from(%(expressions)s, 'UTF8')::json ->> '%(member)s')"
    output_field = TextField()


# The hashes that the log records for a revision, by the proposal and the number.
HASHES_COLUMN = f"""
(SELECT array_agg(convert_from(record.leaf, 'UTF8')::json ->> 'action_hash')
 FROM journal_logrecord AS record
 WHERE record.proposal = %(proposal)s
   AND record.kind IN ({", ".join(f"'{kind}'" for kind in REVISION_RECORDS)})
   AND convert_from(record.leaf, 'UTF8')::json ->> 'revision' = %(revision)s)
"""  # noqa: S608 constants


def is_logged_hash(logged: Iterable[str] | None, action_hash: str) -> bool:
    """Whether the log records this hash, and no other, for a revision, given the value
    of `HASHES_COLUMN`."""
    return set(logged or ()) == {action_hash}


def select_logged_hash() -> Coalesce:
    """Expression for a queryset of executions: the first hash the log recorded for the
    execution's revision, or "". A value per row, because the plan of an EXISTS under an
    OR would read the whole log."""
    records = LogRecord.objects.filter(
        proposal=OuterRef("proposal"), kind__in=REVISION_RECORDS
    ).annotate(
        number=_LeafMember("leaf", member="revision"),
        hash=_LeafMember("leaf", member="action_hash"),
    )
    records = records.filter(
        number=Cast(OuterRef("grant__revision__number"), TextField())
    )
    # By an expression, which no index has: the planner would read the partitions of the
    # log in the order of their ids to the first match.
    first = Subquery(records.order_by(F("id") + Value(0)).values("hash")[:1])
    return Coalesce(first, Value(""), output_field=TextField())
