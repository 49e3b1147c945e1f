"""What one administrator asked for and a second one answers, of every kind and the
oldest first, each with the page on which it is answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import Q
from django.urls import reverse

from assurance.defects import BY_KIND
from journal.models import LogPeriod
from policies import active
from policies.models import Person, PolicyVersion, ProvisioningToken
from reviews import permissions, recovery
from reviews.administration import authority
from reviews.administration.second_person import ANSWERED_WITHIN
from reviews.choices import (
    ChangeStatus,
    DatasetStatus,
    DefectKind,
    RepairChange,
    RepairStatus,
    Scope,
)
from reviews.models import Dataset, DefectChange, Repair, Stop
from reviews.roles import Permission

from ..agents import setting_changes
from ..agents.repairs import CHANGE_TITLES
from ..assurance.library_page import WEIGHT_WORDS
from ..people.page import build_change_line

MOST_EACH = 20  # of a kind
_FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TwoPersonChange:
    """One thing that waits; `subject` links to the page where it is answered. `by` is
    the person who asked, or the public id of one."""

    url: str
    subject: str
    what: str
    by: Person | str | None
    at: datetime | None = None


def list_open_changes(reader: Person, now: datetime) -> list[TwoPersonChange]:
    """List what waits and concerns this reader, the oldest first; nothing for those who
    see no accounts. At most `MOST_EACH` of a kind, and one query for each kind."""
    if not permissions.has_permission(reader, Permission.SEE_PEOPLE):
        return []
    changes = [*_list_authority(reader), *_list_settings(reader), *_list_drafts()]
    changes += [*_list_tokens(now), *_list_lifts(), *_list_archives()]
    if permissions.has_permission(reader, Permission.CONFIRM_REPAIR):
        changes += _list_repairs()
    if permissions.has_permission(reader, Permission.MANAGE_DEFECTS):
        changes += _list_defects()
    if permissions.has_permission(reader, Permission.MANAGE_DATASETS):
        changes += _list_datasets()
    return sorted(_name_people(changes), key=lambda change: change.at or _FIRST)


def _name_people(changes: list[TwoPersonChange]) -> Iterator[TwoPersonChange]:
    ids = {change.by for change in changes if isinstance(change.by, str)}
    rows = Person.objects.filter(public_id__in=ids) if ids else ()
    people = {person.public_id: person for person in rows}
    for change in changes:
        by = people.get(change.by) if isinstance(change.by, str) else change.by
        yield TwoPersonChange(change.url, change.subject, change.what, by, change.at)


def _list_authority(reader: Person) -> Iterator[TwoPersonChange]:
    for row in authority.list_waiting():
        line = build_change_line(row, reader)
        yield TwoPersonChange(
            reverse("reviews:person", args=[row.person.public_id]),
            str(row.person),
            ", ".join([line.label, *line.wishes]),
            row.asked_by,
            row.asked_at,
        )


def _list_settings(reader: Person) -> Iterator[TwoPersonChange]:
    for line in setting_changes.list_waiting(reader):
        yield TwoPersonChange(
            reverse("agents:agent", args=[line.row.agent.slug]),
            f"Agent {line.row.agent.name}",
            "; ".join(line.wishes),
            line.row.asked_by,
            line.row.asked_at,
        )


def _list_drafts() -> Iterator[TwoPersonChange]:
    """The drafts that are newer than the active policy."""
    policy = active.find_active_policy()
    drafts = PolicyVersion.objects.filter(
        status=PolicyVersion.Status.DRAFT, number__gt=policy.number if policy else 0
    )
    for row in drafts.select_related("author").order_by("number")[:MOST_EACH]:
        yield TwoPersonChange(
            reverse("policies:policy", args=[row.number]),
            f"Version {row.number} of the policy",
            "a draft; another administrator than its author activates or refuses it",
            row.author,
            row.created_at,
        )


def _list_tokens(now: datetime) -> Iterator[TwoPersonChange]:
    rows = ProvisioningToken.objects.filter(
        confirmed_at__isnull=True,
        ended_at__isnull=True,
        asked_at__gt=now - ANSWERED_WITHIN,
    ).select_related("asked_by")
    for row in rows[:MOST_EACH]:
        yield TwoPersonChange(
            reverse("reviews:provisioning"),
            "Provisioning",
            "a token for the identity provider",
            row.asked_by,
            row.asked_at,
        )


def _list_lifts() -> Iterator[TwoPersonChange]:
    """Stops over everything that one person asked to lift, and a restore that one
    person confirmed: they take two as well."""
    stops = Stop.objects.filter(scope=Scope.EVERYTHING, lifted_at__isnull=True)
    for row in stops.exclude(lift_asked_by=""):
        what = "everything resumes once a second person confirms"
        yield TwoPersonChange(reverse("reviews:stop"), "Stop", what, row.lift_asked_by)
    epoch = recovery.find_waiting_epoch()
    if epoch is not None and epoch.asked_by:
        what = "everything resumes once a second person confirms"
        url = reverse("reviews:restored")
        yield TwoPersonChange(url, "Restored database", what, epoch.asked_by)


def _list_archives() -> Iterator[TwoPersonChange]:
    rows = LogPeriod.objects.filter(~Q(asked_by=""), archived_at=None)
    for row in rows.order_by("number")[:MOST_EACH]:
        yield TwoPersonChange(
            reverse("reviews:log"),
            f"Period {row.number} of the log",
            f"leaves the database for {row.archive_file}, once a second administrator"
            " runs counterseal log archive",
            row.asked_by,
        )


def _list_repairs() -> Iterator[TwoPersonChange]:
    rows = Repair.objects.filter(status=RepairStatus.PROPOSED)
    for row in rows.order_by("proposed_at")[:MOST_EACH]:
        yield TwoPersonChange(
            reverse("agents:repair", args=[row.pk]),
            f"Repair in run {row.thread}",
            CHANGE_TITLES[RepairChange(row.change)],
            row.proposed_by,
            row.proposed_at,
        )


def _list_defects() -> Iterator[TwoPersonChange]:
    rows = DefectChange.objects.filter(status=ChangeStatus.PROPOSED)
    for row in rows.select_related("asked_by").order_by("asked_at"):
        yield TwoPersonChange(
            reverse("reviews:defect", args=[row.defect]),
            f"Planted defect “{BY_KIND[DefectKind(row.defect)].title}”",
            f"frequency {WEIGHT_WORDS[row.weight].lower()}",
            row.asked_by,
            row.asked_at,
        )


def _list_datasets() -> Iterator[TwoPersonChange]:
    rows = Dataset.objects.filter(status=DatasetStatus.ASKED)
    for row in rows.select_related("asked_by").order_by("asked_at")[:MOST_EACH]:
        yield TwoPersonChange(
            reverse("reviews:datasets"),
            "Dataset",
            row.purpose,
            row.asked_by,
            row.asked_at,
        )
