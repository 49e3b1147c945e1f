"""R0 of the request page: its state, its deadline and what stands in its way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.urls import reverse
from django.utils.http import urlencode

from journal.clock import format_time
from notifications.channels import reach
from policies import tools
from policies.models import Person
from policies.people import is_administrator
from reviews import deadlines, permissions
from reviews.choices import RequestStatus
from reviews.effects.wording import format_names, format_people
from reviews.requests import repeats
from reviews.roles import Permission

from ..components import formatting, log_lines, switches
from ..components.banners import SwitchBanner
from ..components.formatting import DeadlineClock
from ..components.regions import CAUSE_WORDS
from ..components.states import StateLabel
from . import outcome
from .load import LoadedRequest
from .regions import RenderedRegions

MOST_FIELDS = 4  # named in the strip; the page lists all


def build_notices_url(loaded: LoadedRequest) -> str:
    """The list of the messages; empty for people who may not read it."""
    person, request = loaded.person, loaded.request
    allowed = permissions.has_permission(person, Permission.SEE_DELIVERIES)
    if not allowed or person.public_id in request.proposal.barred:
        return ""
    return reverse("reviews:notices", args=[request.pk])


@dataclass(frozen=True)
class StateStrip:
    loaded: LoadedRequest
    regions: RenderedRegions
    notices_url: str

    @cached_property
    def state(self) -> StateLabel:
        """The label in the strip. A new version or a changed business state comes
        before the request's own state."""
        regions, version = self.regions, self.loaded.request.version
        if regions.moved and self.loaded.waiting and 0 < regions.old < version:
            word = f"New version {version} while you were reading"
            return StateLabel("moved", word, icon="warn")
        if not regions.target_moved:
            return self.loaded.state
        reading = self.loaded.reading
        if reading is None:
            return StateLabel("moved", "The record changed", icon="warn")
        word = f"The record changed at {format_time(reading.at)}"
        return StateLabel("moved", word, icon="warn", at=reading.at)

    @cached_property
    def version_origin(self) -> str:
        """What made the version on the screen, where it is not the agent's proposal.
        While the request is open, deciders do not learn each other's names."""
        sealed = self.loaded.sealed
        plain = sealed.cause in {"opened", "modified"}
        cause = "" if plain else CAUSE_WORDS.get(sealed.cause, "")
        is_edit = sealed.revision.author_kind == "person"
        edit = f"{self._editor} changed {self._edited_fields}" if is_edit else ""
        return ". ".join(filter(None, (cause, edit)))

    @property
    def _editor(self) -> str:
        loaded, author = self.loaded, self.loaded.revision.author_id
        if author == loaded.person.public_id:
            return "You"
        if log_lines.hides_names(loaded.person, loaded.request):
            return "Another person"
        person = Person.objects.filter(public_id=author).first()
        return str(person) if person else "A person"

    @property
    def _edited_fields(self) -> str:
        edited = self.regions.values.edited
        labels = [row.label for row in edited.rows] if edited else []
        return format_names(labels, most=MOST_FIELDS) if labels else "nothing"

    @property
    def is_undeclared(self) -> bool:
        """Whether the policy does not know the tool."""
        return tools.load_definition(self.loaded.revision.known_tool).is_undeclared

    @property
    def declare_url(self) -> str:
        """Where this person can begin a policy that declares the tool; empty for anyone
        who may not write policies."""
        if not is_administrator(self.loaded.person):
            return ""
        name = self.loaded.request.proposal.tool_name
        return f"{reverse('policies:new_policy')}?{urlencode({'declare': name})}"

    @property
    def may_take(self) -> bool:
        return self.loaded.able and not self.loaded.holding.own

    @property
    def extended(self) -> datetime | None:
        """The deadline that one extension would give; None where it may not be
        extended."""
        if not self.loaded.able:
            return None
        later = deadlines.compute_extended_deadline(
            self.loaded.request, self.loaded.sealed
        )
        return later if later > self.loaded.request.expires_at else None

    @property
    def is_hard(self) -> bool:
        return self.loaded.able and self.extended is None

    @property
    def clock(self) -> DeadlineClock | None:
        """The deadline; None once nobody is asked any more."""
        if not self.loaded.waiting:
            return None
        return formatting.build_request_clock(self.loaded.request, self.loaded.now)

    @property
    def times_asked(self) -> str:
        """How often the agent has proposed the action; empty when only once."""
        joined = self.loaded.request.joined
        return formatting.format_times_asked(joined) if joined else ""

    @cached_property
    def repeats(self) -> str:
        """How many later proposals got the rejection of this request; empty without
        any."""
        request = self.loaded.request
        if request.status != RequestStatus.REJECTED:
            return ""
        count = repeats.count_repeats(request.proposal_id)
        more = format_people(count, "more time")
        return f"Proposed {more}; rejected automatically" if count else ""

    @property
    def unreached(self) -> str:
        """That nobody was told of the request, and why; empty once somebody was."""
        why = self.loaded.unreached
        return f"{reach.UNREACHED}: {why}" if why else ""

    @property
    def halt(self) -> str:
        """That what it asks for is paused or stopped; empty unless it is."""
        return outcome.describe_halt(self.loaded)

    @cached_property
    def halts(self) -> list[SwitchBanner]:
        """What is paused or stopped, by whom and why, as far as this person may see
        it."""
        if not self.halt:
            return []
        proposal = self.loaded.request.proposal
        action = (proposal.agent, proposal.thread, proposal.tool_name)
        return switches.list_switches_over(self.loaded.person, action)
