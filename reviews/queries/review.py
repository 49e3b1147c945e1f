"""The review page: regions R0 to R8 of one request, as values for the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.dateparse import parse_datetime

from journal.errors import DomainError
from policies import tools
from policies.choices import ExecutionClass, Role, Tier
from policies.models import Person
from reviews import permissions, quorum
from reviews.models import RequestVersion, Revision
from reviews.permissions import Permission
from reviews.presenters import Presentation
from reviews.presenters.common import UNKNOWN_REVERSAL
from reviews.presenters.shapes import Part, Reversal

from . import clocks, log, outcomes, showing
from .clocks import Clock
from .detail import Loaded
from .outcomes import Outcome
from .words import people

RADII = {
    1: "Leaves no trace",
    2: "Wasted work at worst",
    3: "This person's own data",
    4: "Other systems or people",
    5: "Law, money or good name",
}
IF_UNCLEAR = {
    ExecutionClass.KEYED: "Tried again under the same key, so that it happens once",
    ExecutionClass.QUERYABLE: "Looked up by our reference first, then decided",
    ExecutionClass.OPAQUE: "Never tried again: a person says what happened",
}
FLOORS = {
    Tier.APPROVE: "The policy wants a person for this tool.",
    Tier.ESCALATE: "The policy wants two people for this tool, one a supervisor.",
}


@dataclass(frozen=True, slots=True)
class Verb:
    name: str
    label: str
    key: str


VERBS = (
    Verb("approve", "Approve", "A"),
    Verb("modify", "Modify…", "M"),
    Verb("reject", "Reject…", "X"),
    Verb("escalate", "Escalate…", "U"),
)


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    text: str
    effect: str


@dataclass(frozen=True, slots=True)
class Banner:
    """What changed under the reader: the version they read and the one now."""

    title: str
    note: str
    read: int
    now: int
    rows: Sequence[showing.Moved] = ()


class ReviewPage:
    """One request as this person may see it. Regions are computed when printed."""

    def __init__(
        self,
        loaded: Loaded,
        *,
        armed: Any = None,
        read: int | None = None,
        screen: int | None = None,
        problem: DomainError | None = None,
        said: str = "",
        note_kept: str = "",
        focus: str = "",
    ) -> None:
        self.loaded = loaded
        self.armed = armed
        self.read = read  # the version they read
        self.screen = screen  # the version still on their screen after this answer
        self.problem = problem
        self.said = said
        self.note_kept = note_kept
        self.focus = focus
        self.id = loaded.request.pk
        self.url = reverse("reviews:request_detail", args=[self.id])
        self.version = loaded.request.version
        self.action_hash = loaded.request.action_hash
        self.risk, self.tier = loaded.request.risk, loaded.request.tier
        self.state = loaded.state
        self.agent = loaded.request.proposal.agent
        self.thread = loaded.request.proposal.thread
        self.tool = loaded.request.proposal.tool_name
        self.proposed_at = loaded.revision.created_at
        self.policy = loaded.sealed.policy.number

    # R0
    @property
    def clock(self) -> Clock | None:
        if not self.loaded.waiting:
            return None
        request = self.loaded.request
        return clocks.until(
            request.expires_at, since=request.opened_at, now=self.loaded.now
        )

    @property
    def over(self) -> bool:
        """Whether nothing on this page can change any more."""
        return self.loaded.finished

    @property
    def title(self) -> str:
        """The window's title: never a word of the agent's."""
        return f"Request {self.id}"

    @property
    def etag(self) -> str:
        return self.loaded.etag

    @property
    def moved(self) -> bool:
        """Whether the reader's screen shows an older version than the one now."""
        return self.screen is not None and self.screen != self.version

    # R1 to R3
    @cached_property
    def shown(self) -> Presentation | None:
        return showing.presentation(self.loaded.revision)

    @property
    def effect(self) -> tuple[Part, ...]:
        return self.shown.sentence if self.shown else showing.effect(self.revision)

    @property
    def revision(self) -> Revision:
        return self.loaded.revision

    @property
    def read_from(self) -> str:
        """Where the before-state is from: our reader, never the agent."""
        reading = self.revision.reading
        if reading.get("before") is None:
            return ""
        at = parse_datetime(str(reading.get("at", "")))
        clock = f" at {at:%H:%M:%S}" if at else ""
        return f"read from {reading.get('source') or 'the tool'}{clock}"

    @property
    def no_before(self) -> str:
        problem = self.revision.reading.get("problem")
        if problem:
            return "The look-up failed, so compare with the other system yourself."
        return "This tool declares no look-up. What follows are its arguments."

    @cached_property
    def reversal(self) -> Reversal:
        return self.shown.reversal if self.shown else UNKNOWN_REVERSAL

    @property
    def declared(self) -> str:
        tool = self.revision.tool
        return f"Declared by the tool, version {tool.version}" if tool else ""

    @property
    def radius(self) -> str:
        tool = self.revision.tool
        if tool is None:
            return ""
        return RADII[tools.definition(tool).profile.blast_radius]

    @property
    def if_unclear(self) -> str:
        tool = self.revision.tool
        return IF_UNCLEAR[ExecutionClass(tool.execution_class)] if tool else ""

    plain_kinds = ("text", "number", "nothing")  # their text alone says it all

    # R4
    @property
    def rules(self) -> list[Rule]:
        return [
            Rule(rule["id"], rule["text"], rule.get("effect", ""))
            for rule in self.loaded.sealed.rules
        ]

    @property
    def floor_said(self) -> str:
        return FLOORS.get(Tier(self.tier), "The policy wants a person for this.")

    @property
    def policy_url(self) -> str:
        if not permissions.allowed(self.loaded.person, Permission.SEE_POLICIES):
            return ""
        return reverse("policies:policy", args=[self.policy])

    @property
    def agent_url(self) -> str:
        return reverse("agents:agent", args=[self.agent])

    @property
    def thread_url(self) -> str:
        return reverse("agents:thread", args=[self.agent, self.thread])

    @property
    def stop_url(self) -> str:
        return reverse("agents:stop_thread", args=[self.agent, self.thread])

    @property
    def parent(self) -> str:
        return self.loaded.request.proposal.parent

    @property
    def squares(self) -> list[bool]:
        return self.loaded.tally.squares

    @property
    def approvals_said(self) -> str:
        tally = self.loaded.tally
        hidden = " Who, and what they answered, is hidden until it is settled."
        said = f"{tally.said} given, {self._roles()}."
        return said + (hidden if tally.required > 1 and not self.loaded.settled else "")

    def _roles(self) -> str:
        steps = self.loaded.sealed.steps
        return " and ".join(people(s["required"], s["role"]) for s in steps) + " asked"

    @cached_property
    def others(self) -> str:
        """How many others can decide. A number: names would tell who has not yet."""
        if not self.loaded.waiting:
            return ""
        found = _eligible(self.loaded).exclude(pk=self.loaded.person.pk).count()
        if not found:
            return "Nobody else can decide this."
        return f"{people(found, 'other person')} can decide."

    @property
    def if_silent(self) -> str:
        """What happens without an answer; empty once there is one."""
        if self.loaded.request.settled_at is not None:
            return ""
        at = self.loaded.request.expires_at
        return f"At {at:%H:%M:%S} UTC it expires. Nothing is executed."

    # R5, R6: redacted before it was stored; printed by the `untrusted` tag alone
    @property
    def rationale(self) -> str:
        return self.loaded.revision.rationale

    @cached_property
    def claims(self) -> list[tuple[str, str]]:
        return showing.claims(self.loaded.request.proposal, self.loaded.revision)

    @cached_property
    def evidence(self) -> list[showing.Evidence]:
        return showing.evidence(self.loaded.revision)

    @property
    def redactions(self) -> int:
        return sum(item.redactions for item in self.evidence)

    # R7
    @property
    def opened_at(self) -> datetime:
        return self.loaded.request.opened_at

    @property
    def sealed_at(self) -> datetime:
        return self.loaded.sealed.created_at

    @cached_property
    def history(self) -> list[log.Told]:
        return log.history(self.loaded.person, self.loaded.request)

    # R8
    @property
    def verbs(self) -> Sequence[Verb]:
        return () if self.loaded.why_not or self.moved else VERBS

    @property
    def outcome(self) -> Outcome:
        build = outcomes.moved if self.moved else outcomes.of
        return build(self.loaded)

    @property
    def recall(self) -> bool:
        return outcomes.may_recall(self.loaded)

    @property
    def retry(self) -> bool:
        return outcomes.may_retry(self.loaded)

    @cached_property
    def banner(self) -> Banner | None:
        if self.read is None or self.read == self.version:
            return None
        return _banner(self.loaded, self.read)


def _eligible(loaded: Loaded) -> QuerySet[Person]:
    """People of a fitting role who are admitted to the queue and not barred."""
    queue = loaded.request.queue_id
    steps = {step["role"] for step in loaded.sealed.steps}
    roles = [r.value for r in Role if any(quorum.fills(r, step) for step in steps)]
    never = [role.value for role in permissions.NEVER_DECIDE]
    admitted = Q(queueuserpermission__content_object=queue) | Q(
        groups__queuegrouppermission__content_object=queue
    )
    return (
        Person.objects.filter(admitted, is_active=True)
        .filter(pk__in=Person.objects.filter(groups__name__in=roles).values("pk"))
        .exclude(pk__in=Person.objects.filter(groups__name__in=never).values("pk"))
        .exclude(public_id__in=loaded.request.proposal.barred)
        .distinct()
    )


def _banner(loaded: Loaded, read: int) -> Banner:
    before = (
        RequestVersion.objects.filter(request=loaded.request, number=read)
        .select_related("revision__tool")
        .first()
    )
    rows = showing.changes(before.revision, loaded.revision) if before else []
    who = (
        "The agent replaced" if loaded.sealed.cause == "revised" else "Someone changed"
    )
    at = loaded.sealed.created_at
    title = (
        f"{who} this request at {at:%H:%M:%S} while you were reading version {read}."
    )
    note = "Nothing was approved by you."
    return Banner(title, note, read, loaded.request.version, rows)
