"""The page to revoke a reviewer: the approvals that this would undo, and those that
have already run."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from journal import clock
from journal.errors import NotFound
from policies import solo
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import Scope, StopMode
from reviews.models import Decision, Stop
from reviews.roles import Permission

from ..components import in_flight, switches
from ..components.in_flight import InFlightAction, InFlightCounts, format_count
from ..components.switches import SwitchLine
from . import result
from .result import StopResultLine

DECIDING_ROLES = (Role.REVIEWER, Role.SUPERVISOR)


@dataclass(frozen=True, slots=True)
class RevokePage:
    """One reviewer, their approvals that have not run, and those that have."""

    who: str
    reviewer: Person
    load: InFlightCounts
    actions: list[InFlightAction]
    earlier: list[StopResultLine]
    readable: list[StopResultLine]
    own: bool  # the person's own page: somebody else must revoke
    stopped: SwitchLine | None

    @property
    def hidden(self) -> int:
        return max(self.load.queued + self.load.running - len(self.actions), 0)

    @property
    def hidden_earlier(self) -> int:
        return len(self.earlier) - len(self.readable)

    @property
    def grants(self) -> str:
        """The sentence on their authorized and queued executions."""
        count = self.load.queued
        if not count:
            return "None of their approvals is queued."
        who = "it" if count == 1 else "they"
        return (
            f"{format_count(count)} authorized and queued: {who} will be refused, and "
            "the agent told why."
        )

    @property
    def votes(self) -> str:
        """The sentence on their open votes: a number only, because nobody may know
        which requests they voted on before these are settled."""
        count = self.load.waiting
        if not count:
            return "They have no vote on a pending request."
        many = "request" if count == 1 else "requests"
        return (
            f"{format_count(count)} pending {many} with their vote: the vote will no "
            "longer count, and another approval will be needed."
        )

    @property
    def running(self) -> str:
        """The sentence on their running executions; empty without any."""
        count = self.load.running
        if not count:
            return ""
        return (
            f"{format_count(count)} running now: a check right before the effect will "
            "stop it, unless the effect has started."
        )


def build_revoke_page(person: Person, who: str) -> RevokePage:
    """Build the page. Raises NotFound for an unknown reviewer, and if this person may
    not revoke."""
    if not permissions.has_permission(person, Permission.REVOKE):
        raise NotFound
    reviewer = Person.objects.filter(public_id=who).first()
    if reviewer is None or not _is_decider(reviewer):
        raise NotFound
    target = (Scope.REVIEWER, who)
    earlier = list(result.list_earlier_effects(*target, clock.now()))
    return RevokePage(
        who=who,
        reviewer=reviewer,
        load=in_flight.count_in_flight([target])[target],
        actions=in_flight.list_actions(person, *target),
        earlier=earlier,
        readable=result.list_readable_lines(person, earlier),
        own=solo.lacks_second_person(reviewer.pk, person.pk),
        stopped=_find_switch(person, who),
    )


def _is_decider(reviewer: Person) -> bool:
    voted = Decision.objects.filter(reviewer=reviewer, counts=True)
    return permissions.find_deciding_role(reviewer) is not None or voted.exists()


def _find_switch(person: Person, who: str) -> SwitchLine | None:
    row = Stop.objects.filter(
        scope=Scope.REVIEWER,
        key=who,
        mode=StopMode.STOPPED,
        lifted_at__isnull=True,
    ).first()
    return switches.build_switch_lines(person, [row])[0] if row else None


def list_reviewers(person: Person) -> list[Person]:
    """List the people whose approvals this person may revoke, by name."""
    if not permissions.has_permission(person, Permission.REVOKE):
        return []
    names = [role.value for role in DECIDING_ROLES]
    reviewers = Person.objects.filter(groups__name__in=names).exclude(pk=person.pk)
    return list(reviewers.order_by("first_name", "last_name", "username").distinct())


def find_revoke_url(person: Person, who: str) -> str:
    """Find the URL to revoke this reviewer; empty if this person may not."""
    may = (
        permissions.has_permission(person, Permission.REVOKE)
        and who != person.public_id
    )
    return reverse("reviews:revoke", args=[who]) if may else ""
