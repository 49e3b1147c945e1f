"""The log's search box: proposals by their words, people, reasons, runs and numbers.

Every lookup uses an index; the log is then filtered by the proposals found. Stored
entries and queries split text by the same rules (`list_search_words` and
`build_search_query`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.postgres.search import SearchQueryField
from django.db.models import (
    BooleanField,
    Exists,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Value,
)
from django.db.models.functions import Cast

from journal.models import LogPosition
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN, REASON_LABELS
from reviews.models import ApprovalRequest, Decision, Proposal, SearchEntry
from reviews.roles import Permission

from ..components import log_lines

# A word may contain an order's hyphen, an amount's point or a path's slash.
_WORD = re.compile(r"[^\W_]+(?:[.\-@:/'][^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_FIGURE = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
LONGEST, MOST_TERMS = 64, 256  # characters of a word, words of an entry
SHORTEST_START = 3  # letters of the shortest prefix that finds a word


def list_search_words(texts: Iterable[str]) -> list[str]:
    """List the distinct words of these texts. `C-1017` yields its parts as well, and
    `75.00` also yields `75`."""
    words = dict.fromkeys(word for text in texts for word in _split_words(text))
    return [word for word in words if len(word) <= LONGEST][:MOST_TERMS]


def build_search_query(text: str) -> str:
    """Build the tsquery that matches such words; empty when the text has no word.

    All words must match: a word of letters by its beginning, a number as a whole.
    """
    words = dict.fromkeys(_WORD.findall(fold_text(text)))
    return " & ".join(_format_lexeme(word) for word in words if len(word) <= LONGEST)


def _split_words(text: str) -> Iterator[str]:
    for word in _WORD.findall(fold_text(text)):
        yield word
        whole, _, decimals = word.partition(".")
        if _FIGURE.fullmatch(word):
            if decimals and not decimals.strip("0"):
                yield whole
        elif not _PART.fullmatch(word):
            yield from _PART.findall(word)


def _format_lexeme(word: str) -> str:
    quoted = "'" + word.replace("'", "''") + "'"
    starts = word.isalpha() and len(word) >= SHORTEST_START
    return f"{quoted}:*" if starts else quoted


def fold_text(text: str) -> str:
    """The text as entries and queries compare it."""
    return _THOUSANDS.sub("", unicodedata.normalize("NFKC", text).casefold())


MAX_PROPOSALS = 1000  # newest proposals searched
MAX_RECORD_NUMBER = 2**63 - 1  # largest sequence number of a record


@dataclass(frozen=True, slots=True)
class SearchHits:
    """Which records fit. `cut` means that only the newest proposals were searched."""

    fits: Q
    cut: bool = False


class _MatchesQuery(Func):
    arg_joiner = " @@ "
    template = "%(expressions)s"
    output_field = BooleanField()


def search_log(
    person: Person, q: str, *, until: datetime | None = None, whole: bool = False
) -> SearchHits:
    """Search what this person may read for `q`, in at most eight queries.

    `whole` is for exports, which must not leave out older proposals.
    """
    people = _list_people(q)
    most = MAX_RECORD_NUMBER if whole else MAX_PROPOSALS
    lists = [
        _list_newest(_select_by_words(person, q), until, "revision__created_at", most)
    ]
    if people:
        voted = _select_by_decisions(
            person, Q(reviewer__in=[named.pk for named in people])
        )
        lists.append(_list_newest(voted, until, "at", most))
    if codes := _list_reason_codes(q):
        reasoned = _select_by_decisions(person, Q(reason_code__in=codes))
        lists.append(_list_newest(reasoned, until, "at", most))
    ids = {pk for hits in lists for pk in hits[:most]}
    fits = Q(proposal__in=ids | set(_list_proposal_ids(q))) | Q(
        pk__in=_list_record_ids(q)
    )
    fits |= Q(proposal="", actor_id__in=[named.public_id for named in people])
    if people:
        fits |= Q(pk__in=log_lines.select_about(people).values("pk")[:most])
    fits |= Q(agent=q, thread="")
    for agent, thread in _list_runs(ids, q):
        fits |= Q(agent=agent, thread=thread)
    return SearchHits(fits, cut=any(len(hits) > most for hits in lists))


def _list_newest(
    proposals: QuerySet[Any], until: datetime | None, at: str, most: int
) -> list[str]:
    """The ids of the newest proposals, and one more when there are more than `most`."""
    if until:
        proposals = proposals.filter(**{f"{at}__lte": until})
    return list(proposals if most == MAX_RECORD_NUMBER else proposals[: most + 1])


def _select_by_words(person: Person, q: str) -> QuerySet[Any]:
    asked = build_search_query(q)
    if not asked:
        return SearchEntry.objects.none()
    entries = select_entries(asked)
    if not permissions.has_permission(person, Permission.SEE_LOG):
        entries = entries.filter(revision__proposal__in=_select_own_proposals(person))
    return entries.values_list("revision__proposal", flat=True)


def select_entries(query: str) -> QuerySet[SearchEntry]:
    """Select the entries that match this tsquery, newest first. Whoever shows them
    selects what the person may see."""
    fits = _MatchesQuery(F("words"), Cast(Value(query), SearchQueryField()))
    return SearchEntry.objects.filter(fits).order_by("-revision")


def _select_own_proposals(person: Person) -> QuerySet[Proposal]:
    decided = Decision.objects.filter(reviewer=person, request__proposal=OuterRef("pk"))
    owned = Q(barred__contains=[person.public_id])
    return Proposal.objects.filter(owned | Exists(decided))


def _select_by_decisions(person: Person, which: Q) -> QuerySet[Any]:
    """Proposals with such decisions. Decisions of others are included only if their
    votes and names are not hidden from this person."""
    decisions = Decision.objects.filter(which)
    if not permissions.never_decides(person):
        owned = Q(request__proposal__barred__contains=[person.public_id])
        hidden = owned | Q(request__status__in=OPEN)
        decisions = decisions.exclude(~Q(reviewer=person) & hidden)
    if not permissions.has_permission(person, Permission.SEE_LOG):
        decisions = decisions.filter(
            request__proposal__in=_select_own_proposals(person)
        )
    return decisions.order_by("-at").values_list("request__proposal", flat=True)


def _list_people(q: str) -> list[Person]:
    """The people with this name: first, last, both, user name or public id."""
    first, _, last = q.partition(" ")
    whole = Q(first_name__iexact=first, last_name__iexact=last.strip())
    return list(
        Person.objects.filter(
            Q(username__iexact=q)
            | Q(first_name__iexact=q)
            | Q(last_name__iexact=q)
            | Q(public_id=q)
            | whole
        )
    )


def _list_reason_codes(q: str) -> list[str]:
    typed = set(list_search_words([q]))
    words_by_code = {
        code: set(list_search_words([code, text]))
        for code, text in REASON_LABELS.items()
    }
    return [code for code, words in words_by_code.items() if typed and typed <= words]


def _list_proposal_ids(q: str) -> list[str]:
    typed = q.lower()
    if typed.startswith("p-"):
        return [typed]
    if not typed.startswith("r-"):
        return []
    requests = ApprovalRequest.objects.filter(pk=typed)
    return list(requests.values_list("proposal", flat=True))


def _list_record_ids(q: str) -> list[int]:
    if not (q.isascii() and q.isdecimal()) or int(q) > MAX_RECORD_NUMBER:
        return []
    return list(LogPosition.objects.filter(seq=int(q)).values_list("record", flat=True))


def _list_runs(proposals: Iterable[str], q: str) -> list[tuple[str, str]]:
    """The runs with this name among these proposals: some of a run's records have no
    proposal."""
    named = Proposal.objects.filter(pk__in=proposals, thread__iexact=q)
    return list(named.values_list("agent", "thread").distinct()[:5])
