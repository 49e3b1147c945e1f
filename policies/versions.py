"""Saving and activating policy versions. One administrator saves a version, a second
one activates it, and an active version never changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max

from journal import clock
from journal.errors import NotFound, PolicyViolation, StaleVersion
from journal.operations import operation
from journal.state_machine import NO_SOURCE, Edge, Machine

from . import callables, changes, locks, staffing, tools
from .active import compute_digest, load_document, to_plain_data
from .documents import InvalidPolicy, parse_document
from .models import Person, PolicyVersion, Queue
from .people import build_actor, check_administrator

Status = PolicyVersion.Status

machine = Machine(
    "policy version",
    [
        Edge(NO_SOURCE, "save", Status.DRAFT, "policy.saved"),
        Edge(Status.DRAFT, "activate", Status.ACTIVE, "policy.activated"),
        Edge(Status.ACTIVE, "retire", Status.RETIRED, "policy.retired"),
    ],
    lambda row: {"policy": row.number},
)


@operation(
    locks="policy versions (advisory)", writes="PolicyVersion", logs="policy.saved"
)
def save_draft(
    *,
    text_or_mapping: str | Mapping[str, Any],
    author: Person,
    variables: Mapping[str, str] | None = None,
) -> PolicyVersion:
    """Check a document and save it as the next version, not yet active.

    `variables` replace `${NAME}` in its text. Its queues and tools are added when it is
    activated. Raises InvalidPolicy, and NotPermitted for anyone but an administrator.
    """
    check_administrator(author)
    document = parse_document(
        text_or_mapping, variables=variables, further=callables.list_problems
    )
    locks.lock_policy_versions()
    data = to_plain_data(document)
    last = PolicyVersion.objects.aggregate(last=Max("number"))["last"]
    version = PolicyVersion(
        number=(last or 0) + 1,
        document=data,
        digest=compute_digest(data),
        author=author,
    )
    members = {"data": {"digest": version.digest}}
    actor = build_actor(author)
    return machine.create(version, "save", actor=actor, now=clock.now(), **members)


@dataclass(frozen=True, slots=True)
class ShownVersions:
    """What a person read before an activation: the digest of the draft, and the version
    that was active then (0 without one) with its digest."""

    digest: str
    base: int
    base_digest: str


@operation(writes="Queue")
def prepare_queues(*, names: Collection[str]) -> list[Queue]:
    """The queues with these names. One that only a draft has is added, so that an
    administrator can admit people to it before the draft is activated. A queue that
    neither exists nor is in a draft is left out."""
    missing = set(names) - set(
        Queue.objects.filter(name__in=names).values_list("name", flat=True)
    )
    drafts = PolicyVersion.objects.filter(status=Status.DRAFT).order_by("-number")
    for version in drafts if missing else ():
        titles = load_document(version).queues
        tools.add_queues({name: titles[name] for name in missing & titles.keys()})
        missing -= titles.keys()
    return list(Queue.objects.filter(name__in=names).order_by("name"))


@operation(
    locks="policy versions (advisory)",
    writes="PolicyVersion, Queue, Tool",
    logs="policy.activated, policy.retired",
)
def activate_version(
    *,
    version_id: int,
    by: Person,
    reason: str = "",
    shown: ShownVersions | None = None,
) -> PolicyVersion:
    """Activate a draft, retire the version before it, and add its tools. The log record
    says what the new version asks less for. Raises NotFound, NotPermitted for anyone
    but an administrator, PolicyViolation for the author, StaleVersion when the draft or
    the active version is not the one in `shown`, and InvalidPolicy when the document
    fails today's checks or too few people are admitted to decide what it asks for."""
    check_administrator(by)
    locks.lock_policy_versions()
    version = PolicyVersion.objects.filter(pk=version_id).first()
    if version is None:
        raise NotFound
    # guard: activation-shown
    if shown is not None and shown != build_shown_versions(version):
        raise StaleVersion(
            "Another policy version is active now than when you opened this page."
            " Nothing was activated. Read what changed, then activate it again."
        )
    if version.author_id == by.pk:
        raise PolicyViolation(
            "A second administrator must activate a policy. Nothing was changed."
        )
    document = parse_document(version.document, further=callables.list_problems)
    if lacking := staffing.list_shortages(document):
        raise InvalidPolicy("Too few people can decide this policy.", errors=lacking)
    tools.sync_tools(document)
    return _replace_active(version, by, reason)


def build_shown_versions(version: PolicyVersion) -> ShownVersions:
    """What a page shows now of this draft and the active version."""
    current = PolicyVersion.objects.filter(status=Status.ACTIVE).first()
    base = (current.number, current.digest) if current else (0, "")
    return ShownVersions(version.digest, *base)


def _replace_active(version: PolicyVersion, by: Person, reason: str) -> PolicyVersion:
    actor, now = build_actor(by), clock.now()
    before = PolicyVersion.objects.filter(status=Status.ACTIVE).first()
    laxer = []
    if before is not None:
        old, new = load_document(before), load_document(version)
        laxer = changes.list_laxer(changes.list_changes(old, new))
    if before is not None:  # retired first, because only one version may be active
        machine.apply(before, "retire", actor=actor, now=now)
    return machine.apply(
        version,
        "activate",
        actor=actor,
        now=now,
        changes={"activated_by": by, "activated_at": now},
        data={"digest": version.digest, **({"laxer": laxer} if laxer else {})},
        private={"reason": reason} if reason else None,
    )
