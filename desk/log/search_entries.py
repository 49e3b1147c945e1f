"""Indexes revisions for the log's search, shortly after they were stored.

Proposals do not wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.db import connection

from policies import tools
from policies.money import Money
from reviews.effects import describe
from reviews.models import Revision
from reviews.redaction.redactor import list_withheld_arguments, load_redactor

from . import search

BATCH_SIZE = 500  # revisions at a time
# An id is assigned before its commit, so a late commit can be below the newest entry.
# Look this many ids back for it.
LATE_IDS = 5_000
_MISSING = """
SELECT revision.id FROM reviews_revision AS revision
WHERE revision.id > (SELECT coalesce(max(revision_id), 0) FROM reviews_searchentry) - %s
  AND NOT EXISTS (SELECT FROM reviews_searchentry AS entry
                  WHERE entry.revision_id = revision.id)
ORDER BY revision.id LIMIT %s
"""
_STORE = """
INSERT INTO reviews_searchentry (revision_id, words)
VALUES (%s, array_to_tsvector(%s::text[])) ON CONFLICT DO NOTHING
"""


def add_missing_entries(limit: int = BATCH_SIZE) -> int:
    """Index the oldest revisions without an entry, at most `limit`; returns their
    number."""
    with connection.cursor() as cursor:
        cursor.execute(_MISSING, [LATE_IDS, limit])
        missing = [pk for (pk,) in cursor.fetchall()]
    rows = Revision.objects.filter(pk__in=missing).select_related("tool", "proposal")
    entries = [
        (row.pk, search.list_search_words(_list_texts(row)))
        for row in rows.order_by("pk")
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_STORE, entries)
    return len(entries)


def _list_texts(revision: Revision) -> Iterator[str]:
    """The texts that a revision is found by. Values of the agent and of the reader are
    redacted as on pages: a search that finds a hidden value would disclose it."""
    proposal, tool = revision.proposal, revision.tool
    yield from (proposal.pk, proposal.tool_name, proposal.agent, proposal.thread)
    yield from (rule["id"] for rule in revision.evaluation.get("rules", []))
    definition = tools.load_definition(tool) if tool else None
    redactor = load_redactor(
        proposal.agent,
        proposal.thread,
        definition,
        revision.args,
        proposal=proposal.pk,
    )
    yield redactor.text(
        describe.format_sentence(describe.build_effect_sentence(revision))
    )
    for value in (revision.reading.get("keys") or {}).values():
        yield redactor.text(str(value))
    if definition is not None:
        yield definition.title
    hides = {_parse_root(name) for name in list_withheld_arguments(definition)}
    if revision.amount_minor is not None and not hides & _list_money_arguments(
        revision
    ):
        amount = Money(revision.amount_minor, revision.currency)
        yield str(amount)


def _list_money_arguments(revision: Revision) -> set[str]:
    fields = tools.load_definition(revision.known_tool).money
    return {_parse_root(field.amount) for field in fields}


def _parse_root(path: str) -> str:
    return re.split(r"[.\[]", path, maxsplit=1)[0]
