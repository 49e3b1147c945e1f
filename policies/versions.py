"""Saving and activating policy versions. One administrator saves a version, a second
one activates it, and an active version never changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max

from journal import clock
from journal.errors import (
    InvalidInput,
    NotFound,
    PolicyViolation,
    StaleVersion,
    build_field_error,
)
from journal.operations import operation
from journal.state_machine import NO_SOURCE, Edge, Machine

from . import (
    callables,
    changes,
    comparison,
    locks,
    method_covers,
    people,
    solo,
    staffing,
    tools,
)
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
        Edge(Status.DRAFT, "refuse", Status.REFUSED, "policy.refused"),
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
    restores: int | None = None,
) -> PolicyVersion:
    """Check a document and save it as the next version, not yet active.

    `variables` replace `${NAME}` in its text. `restores` is the number of the former
    version that it makes the policy again. Its queues and tools are added when it is
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
        solo=solo.is_solo(),
    )
    data = {"digest": version.digest}
    members = {"data": data if restores is None else {**data, "restores": restores}}
    actor = build_actor(author)
    return machine.create(version, "save", actor=actor, now=clock.now(), **members)


@dataclass(frozen=True, slots=True)
class ShownVersions:
    """What a person read before an activation: the digest of the draft, and the version
    that was active then (0 without one) with its digest."""

    digest: str
    base: int
    base_digest: str


def find_newest_draft() -> PolicyVersion | None:
    """The draft that was saved last, or None."""
    drafts = PolicyVersion.objects.filter(status=Status.DRAFT)
    return drafts.order_by("-number").first()


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
    writes="PolicyVersion, Queue, Tool; in solo mode QueueUserPermission",
    logs="policy.activated, policy.retired; in solo mode person.admitted",
    after="in solo mode wake-up",
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
    fails today's checks, too few people are admitted to decide what it asks for, or too
    few of them have the step-up that it takes."""
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
    if version.status == Status.REFUSED:
        raise PolicyViolation(
            "This draft was refused, so it is not activated. Save a new version."
        )
    if is_own_draft(version, by):
        raise PolicyViolation(
            "A second administrator must activate a policy. Nothing was changed."
        )
    document = parse_document(version.document, further=callables.list_problems)
    if solo.is_solo():  # nobody else could admit them to a new queue
        tools.add_queues(document.queues)
        people.admit_everywhere(by, by=build_actor(by))
    if lacking := staffing.list_shortages(document):
        raise InvalidPolicy(
            "Too few people can decide this policy. Give these queues to more people on"
            " the page People (counterseal people admit NAME --queue QUEUE), then"
            " activate it.",
            errors=lacking,
        )
    # guard: activation-methods
    if lacking := method_covers.list_shortages(document):
        raise InvalidPolicy(
            "Too few people have what this policy takes as a confirmation. They find it"
            " on their page Preferences. Activate the policy after that.",
            errors=lacking,
        )
    tools.sync_tools(document)
    return _replace_active(version, by, reason)


@operation(
    locks="policy versions (advisory)", writes="PolicyVersion", logs="policy.refused"
)
def refuse_draft(*, version_id: int, by: Person, reason: str) -> PolicyVersion:
    """Refuse a draft for good; its author withdraws it by this. Raises NotFound,
    NotPermitted for anyone but an administrator, InvalidInput without a reason, and
    PolicyViolation for a version that is no draft any more."""
    check_administrator(by)
    locks.lock_policy_versions()
    version = PolicyVersion.objects.filter(pk=version_id).first()
    if version is None:
        raise NotFound
    if not reason.strip():
        errors = [build_field_error("reason", "Enter why this draft is refused.")]
        raise InvalidInput("Nothing was refused.", errors=errors)
    if version.status != Status.DRAFT:
        raise PolicyViolation(
            f"This version is {version.status}, so it is not refused."
        )
    now = clock.now()
    return machine.apply(
        version,
        "refuse",
        actor=build_actor(by),
        now=now,
        changes={"refused_by": by, "refused_at": now, "refusal": reason.strip()},
        data={"digest": version.digest},
        private={"reason": reason.strip()},
    )


def restore_version(*, version: PolicyVersion, by: Person) -> PolicyVersion:
    """A draft with the document of a former version, which becomes the policy again
    like any other draft: by a second administrator. A draft of it that is there already
    is returned. Raises PolicyViolation for a version that is not retired, and what
    `save_draft` raises when it fails today's checks."""
    check_administrator(by)
    if version.status != Status.RETIRED:
        raise PolicyViolation("Only a version that was active before is restored.")
    drafts = PolicyVersion.objects.filter(status=Status.DRAFT, digest=version.digest)
    return drafts.first() or save_draft(
        text_or_mapping=version.document, author=by, restores=version.number
    )


def is_own_draft(version: PolicyVersion, person: Person) -> bool:
    """Whether this person wrote the draft, so that another administrator must activate
    it; a draft of solo mode needs no other in solo mode."""
    return version.author_id == person.pk and not (version.solo and solo.is_solo())


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
        laxer = changes.list_laxer(comparison.compare_policies(old, new))
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
