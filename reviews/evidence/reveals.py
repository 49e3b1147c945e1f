"""Records what a person has seen: revealed values and files, and announced effects.

A value that the schema marks sensitive, and a file as it was sent, is shown once, to
one person, who gives a reason; the log records which one and never its content. For
announced effects it records that people have seen them, or that they were near misses.
That changes no effect; near misses show which class of effects needs attention.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core import signing
from django.db.models import TextChoices

from journal import clock, log
from journal.errors import NotFound, ReasonMissing, build_field_error
from journal.operations import operation
from policies import tools
from policies.models import Person
from policies.people import build_actor
from reviews import permissions, transitions
from reviews.models import ApprovalRequest, Execution, RequestVersion, Sighting
from reviews.presenters.arguments import (
    Leaf,
    build_cell,
    collect_leaves,
    drop_indexes,
    format_label,
    is_path_within,
)
from reviews.roles import Permission

from . import files


class RevealReason(TextChoices):
    """Why a person needs to see a value that the schema marks as sensitive."""

    DECIDE = "decide", "I cannot decide without it"
    COMPLAINT = "complaint", "A complaint or an incident"
    AUDIT = "audit", "An audit"
    OTHER = "other", "Other (please specify)"


@dataclass(frozen=True, slots=True)
class HiddenArgument:
    """A sensitive argument, which the page shows as a chip."""

    name: str  # as the tool declares it
    label: str


@dataclass(frozen=True, slots=True)
class RevealedValue:
    """One revealed leaf. Its text is untrusted."""

    label: str
    text: str


def list_hidden_arguments(version: RequestVersion) -> list[HiddenArgument]:
    """The sensitive arguments present in this version, labelled as in the schema."""
    tool = version.revision.tool
    if tool is None:
        return []
    definition = tools.load_definition(tool)
    return [
        HiddenArgument(name, format_label(name, definition.labels))
        for name in definition.sensitive
        if _list_leaves(version, name)
    ]


@operation(logs="value.revealed", after="the values, for the page")
def reveal_argument(
    *, request_id: str, person: Person, name: str, reason_code: str, reason: str
) -> list[RevealedValue]:
    """Return the values under one sensitive argument. The log record is committed
    before they are returned.

    *Raises* NotPermitted, ReasonMissing for a missing or unknown reason, and NotFound
    for an argument that is not sensitive.
    """
    _check_may_reveal(person, reason_code, reason)
    request = _load_request(request_id)
    version = request.sealed
    definition = tools.load_definition(version.revision.known_tool)
    if name not in definition.sensitive:  # guard: reveal-sensitive
        raise NotFound
    leaves = _list_leaves(version, name)
    _log_reveal(request, person, {"argument": name}, reason_code, reason)
    return [
        RevealedValue(
            format_label(leaf.path, definition.labels), build_cell(leaf.value).text
        )
        for leaf in leaves
    ]


@dataclass(frozen=True, slots=True)
class HiddenFile:
    """A file of the evidence, which a person sees as it was sent by a reveal only."""

    name: str  # what a form sends back
    label: str  # in our words: the file's own name is untrusted
    sha256: str


def list_hidden_files(version: RequestVersion) -> list[HiddenFile]:
    """The files of this version, in the order of its evidence."""
    return [
        HiddenFile(f"file:{file['sha256']}", f"the file of evidence {number}", sha256)
        for number, item in enumerate(version.revision.evidence, 1)
        if (file := item.get("file")) and (sha256 := file["sha256"])
    ]


def has_hidden_values(version: RequestVersion) -> bool:
    """Whether there is anything that a person may reveal."""
    return bool(list_hidden_arguments(version) or list_hidden_files(version))


@operation(logs="value.revealed", after="the file, for the page")
def reveal_file(
    *, request_id: str, person: Person, name: str, reason_code: str, reason: str
) -> RevealedFile:
    """Return a pass to one file as it was sent. The log record is committed before
    that.

    *Raises* NotPermitted, ReasonMissing for a missing or unknown reason, and NotFound
    for a file that the request does not show.
    """
    _check_may_reveal(person, reason_code, reason)
    request = _load_request(request_id)
    hidden = {file.name: file for file in list_hidden_files(request.sealed)}
    if name not in hidden:  # guard: reveal-own-file
        raise NotFound
    sha256 = hidden[name].sha256
    file = files.find_file(request.proposal.agent, sha256)
    if file is None or file.erased_at is not None:
        raise NotFound
    _log_reveal(request, person, {"file": sha256}, reason_code, reason)
    return RevealedFile(
        sha256=sha256,
        size=file.size,
        pictures=range(1, file.pictures.count() + 1),
        table=files.load_table(file),
        token=signing.dumps(_build_pass(person, request_id, sha256), salt=PASS_SALT),
    )


PASS_SALT = "evidence.file"  # noqa: S105 - no secret
PASS_SECONDS = 90  # as long as a page shows what was revealed, and time to fetch it


@dataclass(frozen=True, slots=True)
class RevealedFile:
    """What a person sees of a revealed file. The table's cells are untrusted. `token`
    opens the pictures and the file itself for `PASS_SECONDS`."""

    sha256: str
    size: int
    pictures: range
    table: Mapping[str, Any] | None
    token: str


def has_pass(token: str, person: Person, request_id: str, sha256: str) -> bool:
    """Whether this person revealed this file of this request a moment ago."""
    try:
        given = signing.loads(token, salt=PASS_SALT, max_age=PASS_SECONDS)
    except signing.BadSignature:
        return False
    return bool(given == _build_pass(person, request_id, sha256))


def _build_pass(person: Person, request_id: str, sha256: str) -> list[str]:
    return [person.public_id, request_id, sha256]


def _check_may_reveal(person: Person, reason_code: str, reason: str) -> None:
    permissions.check_permission(person, Permission.REVEAL)
    if reason_code not in set(RevealReason):
        raise ReasonMissing("Choose why you need to see it. Nothing was revealed.")
    if reason_code == RevealReason.OTHER and not reason.strip():
        raise ReasonMissing(
            "Enter why you need to see it. Nothing was revealed.",
            errors=[build_field_error("reason", "Enter why you need to see it.")],
        )


def _load_request(request_id: str) -> ApprovalRequest:
    requests = ApprovalRequest.with_canaries.select_related("proposal")
    return requests.get(pk=request_id)


def _log_reveal(
    request: ApprovalRequest,
    person: Person,
    what: Mapping[str, str],
    reason_code: str,
    reason: str,
) -> None:
    log.append(
        "value.revealed",
        actor=build_actor(person),
        at=clock.now(),
        data={**what, "reason_code": reason_code},
        private={"reason": reason},
        **transitions.request.context(request),
    )


def _list_leaves(version: RequestVersion, name: str) -> list[Leaf]:
    """The leaves of one argument, at any list index."""
    leaves = collect_leaves(version.revision.args)
    return [leaf for leaf in leaves if is_path_within(drop_indexes(leaf.path), name)]


MAX_SIGHTINGS = 200  # executions in one call


@operation(writes="Sighting", logs="announced.seen or announced.near_miss")
def record_sightings(
    *, person: Person, executions: Collection[Execution], near_miss: bool = False
) -> int:
    """Mark up to `MAX_SIGHTINGS` announced effects as seen or as a near miss; return
    the number of new marks.

    The caller has checked that the person may see these executions.
    """
    now = clock.now()
    sightings = Sighting.objects.filter(person=person, execution__in=executions)
    before = dict(sightings.values_list("execution_id", "near_miss"))
    # A near miss is final.
    replaced = (None, False) if near_miss else (None,)
    new = [x for x in executions if before.get(x.pk) in replaced][:MAX_SIGHTINGS]
    Sighting.objects.bulk_create(
        [
            Sighting(person=person, execution=x, near_miss=near_miss, at=now)
            for x in new
        ],
        update_conflicts=True,
        unique_fields=["person", "execution"],
        update_fields=["near_miss"],
    )
    log.append_many(_build_log_entry(person, x, near_miss, now) for x in new)
    return len(new)


def _build_log_entry(
    person: Person, execution: Execution, near_miss: bool, now: datetime
) -> log.Entry:
    proposal = execution.proposal
    return log.Entry(
        "announced.near_miss" if near_miss else "announced.seen",
        actor=build_actor(person),
        at=now,
        proposal=proposal.pk,
        agent=proposal.agent,
        thread=proposal.thread,
        data={"execution": execution.pk},
    )
