"""The hold on a request as one person may see it, and the people who could take it
over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import QuerySet

from journal.clock import format_time
from policies import staffing
from policies.choices import Role
from policies.models import Admission, Person
from reviews import permissions, quorum
from reviews.choices import LostHow
from reviews.holds import rows
from reviews.models import ApprovalRequest, Hold, RequestVersion

from .log_sentences import HIDDEN_NAME


@dataclass(frozen=True, slots=True)
class HoldStatus:
    """A hold as a page shows it; a lapsed hold counts as none."""

    own: bool = False
    by: Person | str = ""  # somebody else, or a hidden name
    since: datetime | None = None
    until: datetime | None = None
    token: str = ""  # only of one's own hold
    asked: bool = False  # this person gets a mail when it is free
    offered: bool = False  # the holder offers it to this person, who may decide it
    offered_to: str = ""  # the colleague to whom this person offers it
    declined_by: str = ""  # the colleague who declined this person's last offer

    @property
    def free(self) -> bool:
        return not self.own and not self.by

    @property
    def key(self) -> str:
        """A text that changes whenever what the page shows of it does."""
        until = f"{self.until.timestamp():.0f}" if self.until else ""
        flags = self.declined_by, self.own, self.asked, self.offered, self.offered_to
        return "".join(str(int(bool(flag))) for flag in flags) + until

    @property
    def answer(self) -> str:
        """What became of this person's offer, as a sentence; empty while it stands."""
        return f"{self.declined_by} declined your offer." if self.declined_by else ""


def build_hold_status(
    person: Person, request: ApprovalRequest, now: datetime
) -> HoldStatus:
    """The hold on a request that was loaded with its hold; no query."""
    hold = _find_hold(request)
    if hold is None or not rows.is_held(hold, now):
        return HoldStatus()
    if hold.holder_id == person.pk:
        return HoldStatus(
            own=True,
            since=hold.taken_at,
            until=hold.until,
            token=hold.token,
            offered_to=str(hold.offered_to or ""),
            declined_by=str(hold.declined_by or ""),
        )
    return HoldStatus(
        by=HIDDEN_NAME if _is_own_run(person, request) else hold.holder or "",
        since=hold.taken_at,
        until=hold.until,
        asked=person.public_id in hold.asked_by,
        offered=hold.offered_to_id == person.pk and _is_open_to(person, request),
    )


def _is_open_to(person: Person, request: ApprovalRequest) -> bool:
    """Whether nothing was done since the offer that keeps this person from it."""
    kept_out = {*request.barred, *request.closed_to}
    admitted = request.queue_id in permissions.queues_of(person)
    return admitted and person.public_id not in kept_out


def describe_lost_hold(person: Person, request: ApprovalRequest) -> str:
    """The sentence for the person whose hold somebody else ended; or empty."""
    hold = _find_hold(request)
    if hold is None or hold.lost_by_id != person.pk:
        return ""
    if hold.lost_how == LostHow.BROKEN:
        return (
            f"{hold.lost_to} ended your claim at {format_time(hold.lost_at)}. "
            "What you typed is saved."
        )
    if hold.lost_how == LostHow.UNANSWERED:
        return (
            f"{hold.lost_to} did not answer your offer. Your claim ended at "
            f"{format_time(hold.lost_at)}."
        )
    return f"{hold.lost_to} accepted this from you at {format_time(hold.lost_at)}."


def _find_hold(request: ApprovalRequest) -> Hold | None:
    try:
        return request.hold
    except ObjectDoesNotExist:
        return None  # nobody ever held it


def _is_own_run(person: Person, request: ApprovalRequest) -> bool:
    """Whether this is the person's own run: they never learn who decides on it (as in
    the log)."""
    if permissions.never_decides(person):
        return False
    return person.public_id in request.barred


def may_break_hold(person: Person, request: ApprovalRequest) -> bool:
    """Whether this person may end another's hold: a supervisor of the queue."""
    supervises = permissions.find_deciding_role(person) is Role.SUPERVISOR
    return supervises and request.queue_id in permissions.queues_of(person)


def may_supervise(person: Person, request: ApprovalRequest) -> bool:
    """Whether this person may return, assign or move the request, by the rule of
    `decisions.returns`."""
    return may_break_hold(person, request) and not request.proposal.bars(
        person.public_id
    )


def select_eligible_people(
    request: ApprovalRequest, sealed: RequestVersion
) -> QuerySet[Person]:
    """People with a role that one of the steps asks for, admitted to the queue and not
    barred from the request."""
    steps = {step["role"] for step in sealed.steps}
    roles = [r for r in Role if any(quorum.can_fill_step(r, step) for step in steps)]
    return _select_admitted(request, roles)


def select_supervisors(request: ApprovalRequest) -> QuerySet[Person]:
    """The supervisors who are asked when the request is escalated."""
    return _select_admitted(request, [Role.SUPERVISOR])


def _select_admitted(
    request: ApprovalRequest, roles: Iterable[Role]
) -> QuerySet[Person]:
    queue = request.queue_id
    never = [role.value for role in staffing.separate_roles()]
    admitted = Admission.objects.filter(queue_id=queue).values("person_id")
    return (
        Person.objects.filter(pk__in=admitted, is_active=True)
        .filter(pk__in=Person.objects.filter(groups__name__in=[*roles]).values("pk"))
        .exclude(pk__in=Person.objects.filter(groups__name__in=never).values("pk"))
        .exclude(public_id__in=[*request.proposal.barred, *request.proposal.kept_out])
    )
