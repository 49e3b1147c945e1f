"""Which decided versions a dataset holds, and which part each of them is in.

All lines that share a customer or a thread are in the same part. Otherwise a model
could be tested on a customer whom it was trained on.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet

from policies import tools
from reviews.choices import DECIDED, CanaryEnding, Verdict
from reviews.governance import voters
from reviews.models import ApprovalRequest, Canary, Dataset, Decision, RequestVersion

from .redaction import (
    build_pseudonym,
    list_customers,
    list_people_named,
    list_schema_words,
)

MOST_DECISIONS = 10_000  # in one dataset
PARTS = ("train", "validation", "test")
_CHUNK = 500  # rows that are held at once
_ENDING_VERDICTS = (Verdict.MODIFY, Verdict.ESCALATE)
Version = tuple[str, int]  # the id of a request, and the number of its version


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """Every line of a dataset in the order of the file. `decisions` are the ids of
    those that each line is about; a canary has none. `named` are people whom the lines
    name, and `schema_words` words of their tools that are no names."""

    lines: Sequence[Version]
    decisions: Mapping[Version, Sequence[int]]
    parts: Mapping[str, str]  # by the id of the request
    customers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    schema_words: frozenset[str] = frozenset()


def select_decisions(dataset: Dataset) -> QuerySet[Decision]:
    """The decisions of the tools and the period, without those that were undone. Before
    the consent `until_decision` is 0 and limits nothing."""
    decisions = Decision.objects.filter(
        ~voters.build_undone_condition(),
        at__gte=dataset.since,
        at__lt=dataset.until,
        request__tool_name__in=dataset.tools,
    )
    newest = dataset.until_decision
    return decisions.filter(pk__lte=newest) if newest else decisions


def select_canaries(dataset: Dataset) -> QuerySet[Canary]:
    """The decided canaries of the tools and the period, if they were asked for."""
    if not dataset.with_canaries:
        return Canary.objects.none()
    canaries = Canary.objects.filter(
        ending=CanaryEnding.DECIDED,
        ended_at__gte=dataset.since,
        ended_at__lt=dataset.until,
        tool_name__in=dataset.tools,
    )
    consented = dataset.settled_at
    return canaries.filter(ended_at__lte=consented) if consented else canaries


def build_plan(dataset: Dataset, key: bytes) -> DatasetPlan:
    """The plan of a dataset that has its consent: the same each time, whatever people
    decide meanwhile."""
    decided = _group_decisions(dataset)
    canaries = list(
        select_canaries(dataset).values_list(
            "proposal__request__id", "proposal_id", "source_id"
        )
    )
    lines = [*decided, *((request, 1) for request, _, _ in canaries)]
    lines.sort(key=lambda line: build_pseudonym(key, "line", f"{line[0]}.{line[1]}"))
    groups = _Groups()
    for _, planted, source in canaries:
        groups.join([f"proposal {planted}", f"proposal {source}"])
    customers, named, words = _join_requests(groups, {request for request, _ in lines})
    shares = (dataset.train, dataset.validation, dataset.test)
    parts = {
        request: choose_part(key, groups.find(f"request {request}"), shares)
        for request, _ in lines
    }
    return DatasetPlan(lines, decided, parts, customers, named, words)


def choose_part(key: bytes, group: str, shares: Sequence[int]) -> str:
    """The part of a group: always the same for a key, and `shares` in percent of all
    groups."""
    digest = hmac.digest(key, f"part\0{group}".encode(), hashlib.sha256)
    drawn = int.from_bytes(digest[:6]) / 2**48 * 100
    for name, share in zip(PARTS, shares, strict=True):
        if drawn < share:
            return name
        drawn -= share
    return PARTS[-1]


def _group_decisions(dataset: Dataset) -> dict[Version, list[int]]:
    """The decisions of each decided version that they were shown."""
    rows = list(
        select_decisions(dataset)
        .order_by("pk")
        .values_list("pk", "request_id", "version", "verdict", "reviewer__public_id")
    )
    edited = _load_editors({row[1] for row in rows if row[3] == Verdict.MODIFY})
    by_version: dict[Version, list[int]] = defaultdict(list)
    ended: set[Version] = set()
    for pk, request, version, verdict, reviewer in rows:
        # An edit that needs nobody else is recorded as a vote on the edited version.
        after = edited.get((request, version)) == reviewer and verdict == Verdict.MODIFY
        shown = (request, version - 1 if after else version)
        by_version[shown].append(pk)
        if verdict in _ENDING_VERDICTS:
            ended.add(shown)
    ended |= _load_last_versions(dataset, {request for request, _ in by_version})
    return {version: pks for version, pks in by_version.items() if version in ended}


def _load_editors(requests: Collection[str]) -> dict[Version, str]:
    """The public id of the person who made each edited version."""
    rows = RequestVersion.objects.filter(request__in=requests, cause="modified")
    return {
        (request, number): author
        for request, number, author in rows.values_list(
            "request_id", "number", "revision__author_id"
        )
    }


def _load_last_versions(dataset: Dataset, requests: Collection[str]) -> set[Version]:
    """The versions whose approval or rejection settled their request before the
    consent."""
    settled = ApprovalRequest.objects.filter(
        pk__in=requests,
        status__in=DECIDED,
        settled_at__lte=dataset.settled_at,
    )
    return set(settled.values_list("pk", "version"))


def _join_requests(
    groups: _Groups, requests: Collection[str]
) -> tuple[dict[str, frozenset[str]], frozenset[str], frozenset[str]]:
    """Join each request with its thread and its customers. Return the customers, the
    people whom the versions name, and the words of their tools' schemas."""
    customers_of: dict[str, set[str]] = defaultdict(set)
    named: set[str] = set()
    words: set[str] = set()
    for version in _load_versions(requests):
        revision, proposal = version.revision, version.request.proposal
        definition = tools.load_definition(revision.known_tool)
        customers = list_customers(proposal, revision, definition)
        named.update(list_people_named(proposal, revision, definition))
        words.update(list_schema_words(definition, revision))
        customers_of[version.request_id] |= customers
        groups.join(
            [
                f"request {version.request_id}",
                f"proposal {proposal.pk}",
                f"thread {proposal.agent}/{proposal.thread}",
                *(f"customer {customer}" for customer in sorted(customers)),
            ]
        )
    known = {
        request: frozenset(customers) for request, customers in customers_of.items()
    }
    return known, frozenset(named), frozenset(words)


def _load_versions(requests: Collection[str]) -> Iterator[RequestVersion]:
    versions = RequestVersion.objects.filter(
        Q(request__in=requests),
        revision__tool__isnull=False,
        revision__removed_after=None,
    )
    related = versions.select_related("revision__tool", "request__proposal")
    return related.order_by("pk").iterator(chunk_size=_CHUNK)


class _Groups:
    """Sets of names that grow together (union-find)."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def find(self, name: str) -> str:
        """The least name of the set, so that it does not depend on any order."""
        path = []
        while (above := self._above.setdefault(name, name)) != name:
            path.append(name)
            name = above
        for passed in path:
            self._above[passed] = name
        return name

    def join(self, names: Iterable[str]) -> None:
        """Make one set of the sets that these names are in."""
        tops = sorted({self.find(name) for name in names})
        for top in tops[1:]:
            self._above[top] = tops[0]
