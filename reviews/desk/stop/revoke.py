"""The page to revoke a reviewer: the approvals that this would undo, and those that
have already run."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from journal import clock
from journal.errors import NotFound
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import Scope, StopMode
from reviews.desk.components import in_flight, switches
from reviews.desk.components.in_flight import Action, Load, capped
from reviews.desk.components.switches import Switch
from reviews.models import Decision, Stop
from reviews.permissions import Permission

from . import result
from .result import Line

DECIDE = (Role.REVIEWER, Role.SUPERVISOR)


@dataclass(frozen=True, slots=True)
class RevokePage:
    """One reviewer, their approvals that have not run, and those that have."""

    who: str
    name: str
    load: Load
    actions: list[Action]
    earlier: list[Line]
    told: list[Line]
    mine: bool  # the person's own page: somebody else must revoke
    stopped: Switch | None

    @property
    def hidden(self) -> int:
        return max(self.load.queued + self.load.running - len(self.actions), 0)

    @property
    def hidden_earlier(self) -> int:
        return len(self.earlier) - len(self.told)

    @property
    def grants(self) -> str:
        """The sentence on their authorized and queued executions."""
        count = self.load.queued
        if not count:
            return "Nothing of theirs is queued."
        return (
            f"{capped(count)} authorized and queued: grant revoked, execution refused, "
            "never run. The agent is told why."
        )

    @property
    def votes(self) -> str:
        """The sentence on their open votes: a number only, because nobody may know
        which requests they voted on before these are settled."""
        count = self.load.waiting
        if not count:
            return "No vote of theirs is on anything open."
        many = "request" if count == 1 else "requests"
        return (
            f"{capped(count)} open {many} with their vote: the vote is void, and "
            "others are asked again."
        )

    @property
    def running(self) -> str:
        """The sentence on their running executions; empty without any."""
        count = self.load.running
        if not count:
            return ""
        return (
            f"{capped(count)} running just now: stopped by the check right before the "
            "effect, unless that has begun."
        )


@dataclass(frozen=True, slots=True)
class Reviewer:
    """A reviewer with the URL of the page that revokes them."""

    name: str
    url: str


def page(person: Person, who: str) -> RevokePage:
    """Build the page. Raises NotFound for an unknown reviewer, and if this person may
    not revoke."""
    if not permissions.allowed(person, Permission.REVOKE):
        raise NotFound
    reviewer = Person.objects.filter(public_id=who).first()
    if reviewer is None or not _decides(reviewer):
        raise NotFound
    target = (Scope.REVIEWER, who)
    earlier = list(result.earlier_stops(*target, clock.now()))
    return RevokePage(
        who=who,
        name=str(reviewer),
        load=in_flight.loads([target])[target],
        actions=in_flight.actions(person, *target),
        earlier=earlier,
        told=result.told(person, earlier),
        mine=reviewer.pk == person.pk,
        stopped=_stopped(person, who),
    )


def _decides(reviewer: Person) -> bool:
    voted = Decision.objects.filter(reviewer=reviewer, counts=True)
    return permissions.deciding_role(reviewer) is not None or voted.exists()


def _stopped(person: Person, who: str) -> Switch | None:
    row = Stop.objects.filter(
        scope=Scope.REVIEWER,
        key=who,
        mode=StopMode.STOPPED,
        lifted_at__isnull=True,
    ).first()
    return switches.lines(person, [row])[0] if row else None


def reviewers(person: Person) -> list[Reviewer]:
    """List the people whose approvals this person may revoke, by name."""
    if not permissions.allowed(person, Permission.REVOKE):
        return []
    names = [role.value for role in DECIDE]
    found = Person.objects.filter(groups__name__in=names).exclude(pk=person.pk)
    rows = found.order_by("first_name", "last_name", "username").distinct()
    return [Reviewer(str(one), url(one.public_id)) for one in rows]


def url(who: str) -> str:
    """Build the URL of the page that revokes a reviewer, by their public id."""
    return reverse("reviews:revoke", args=[who])


def url_for(person: Person, who: str) -> str:
    """Find the URL to revoke this reviewer; empty if this person may not."""
    may = permissions.allowed(person, Permission.REVOKE) and who != person.public_id
    return url(who) if may else ""
