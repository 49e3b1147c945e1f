"""The page after a database restore.

Shows what is known about the restore: the last record seen before it, the newest record
now, and the people who looked. Two of them must confirm before anything runs again.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from journal import failover, high_water_mark, restore_epochs
from journal.errors import TextMissing
from journal.models import Epoch, Promotion
from policies import solo
from policies.models import Person
from reviews import permissions, recovery
from reviews.choices import IN_FLIGHT
from reviews.models import IS_OPEN, ApprovalRequest, Execution
from reviews.roles import Permission

from ..components import htmx, log_lines
from ..components.frame import require_person

REASON_SENTENCES = {
    restore_epochs.BEHIND: "The database is older than the records that Counterseal has"
    " seen.",
    restore_epochs.ANOTHER: "The database is on a different server or timeline than"
    " before.",
    failover.OLDER_TIMELINE: "The database is on an older timeline than before: a"
    " former server came back.",
    failover.NOT_SYNCHRONOUS: "A standby took over, but the former server did not wait"
    " for one when this host last asked.",
    failover.UNWATCHED: "A standby took over, but nobody had asked lately whether the"
    " former server waited for a standby.",
    failover.NOT_STREAMED: "The database is on a new timeline, and its server was no"
    " streaming standby, or was restarted after it took over.",
    failover.HOSTS_MISSING: "A standby took over, but not every host has compared its"
    " newest record with it.",
    restore_epochs.UNREADABLE: "The epoch file on this host is damaged.",
    restore_epochs.DISK_ERROR: "Counterseal cannot read its epoch file from disk."
    " Everything resumes automatically once it can.",
}


@dataclass(frozen=True, slots=True)
class RestoreReview:
    """One restore with the two people who looked."""

    epoch: Epoch
    first: Person | None
    second: Person | None


@dataclass(frozen=True, slots=True)
class RestoredPage:
    """The page's facts, and what this person may do."""

    why: str  # empty when all is well
    asks: bool  # whether two people must look; not for an unreadable disk
    waiting: RestoreReview | None
    seen: int | None  # the last record that this host saw
    here: int | None  # the newest record in the database
    requests: int
    executions: int
    may: bool
    looked_first: bool  # this person looked first
    before: list[RestoreReview]
    promotions: list[Promotion]  # the last twenty standbys that took over

    @property
    def offered(self) -> bool:
        """Whether this person may confirm now that they have looked."""
        return bool(self.why) and self.asks and self.may and not self.looked_first


def build_restored_page(person: Person) -> RestoredPage:
    """Build the page: the restore that waits for confirmation, and the last twenty."""
    why, waiting = restore_epochs.find_halt_reason(), recovery.find_waiting_epoch()
    past = Epoch.objects.filter(began_at__isnull=False).order_by("-number")
    rows = [*([waiting] if waiting else []), *past[:20]]
    people = log_lines.load_people(
        who for row in rows for who in (row.asked_by, row.by)
    )
    looked = {
        row.pk: RestoreReview(row, people.get(row.asked_by), people.get(row.by))
        for row in rows
    }
    return RestoredPage(
        why=_describe_reason(why, waiting),
        asks=waiting is not None or why != restore_epochs.DISK_ERROR,
        waiting=looked[waiting.pk] if waiting else None,
        seen=_read_last_seen_record(),
        here=restore_epochs.load_database_state(None).newest,
        requests=ApprovalRequest.objects.filter(IS_OPEN).count(),
        executions=_count_unfinished(),
        may=permissions.has_permission(person, Permission.LIFT),
        looked_first=waiting is not None
        and solo.lacks_second_person(waiting.asked_by, person.public_id),
        before=[looked[row.pk] for row in past[:20]],
        promotions=list(Promotion.objects.order_by("-at")[:20]),
    )


def _describe_reason(why: str, waiting: Epoch | None) -> str:
    if not why:
        return ""
    return REASON_SENTENCES.get(
        waiting.why if waiting else why, REASON_SENTENCES[restore_epochs.BEHIND]
    )


def _read_last_seen_record() -> int | None:
    try:
        seen = high_water_mark.read_mark()
    except (high_water_mark.CorruptMarkFile, OSError):
        return None
    return seen.record if seen else None


def _count_unfinished() -> int:
    return Execution.objects.filter(status__in=IN_FLIGHT).count()


LOOKED_MESSAGE = "Recorded. A second person must confirm as well."
RESUMED_MESSAGE = "Confirmed. Workers resume automatically."


@require_http_methods(["GET", "HEAD", "POST"])
def restored(request: HttpRequest) -> HttpResponse:
    """Whether this is the database that Counterseal knows; POST confirms that a person
    looked."""
    who, reason = require_person(request), request.POST.get("reason", "")
    error = None
    if request.method == "POST":
        error = htmx.catch_refusal(
            lambda: recovery.confirm_restore(
                person=who, reason=reason, shown_asked=htmx.read_shown_asked(request)
            )
        )
        if error is None:
            done = recovery.find_waiting_epoch() is None
            messages.success(request, RESUMED_MESSAGE if done else LOOKED_MESSAGE)
            return redirect("reviews:restored")
    page = build_restored_page(who)
    unsent = "" if page.offered else reason
    empty = error if page.offered and isinstance(error, TextMissing) else None
    context = {
        "page": page,
        "problem": None if empty else error,
        "empty": empty,
        "reason": reason,
        "kept": unsent,
    }
    status = error.status if error else 200
    return render(request, "desk/recovery/restored.html", context, status=status)
