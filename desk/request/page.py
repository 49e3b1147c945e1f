"""The request page: regions R0 to R8 of one request, each a part of its own."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from django.urls import reverse

from journal.errors import DomainError

from .approvals import ApprovalsRegion
from .attention import SentAnswers
from .banners import Banners
from .decision import DecisionRegion, KeptText
from .history import Conversation, HistoryRegion
from .load import LoadedRequest
from .messages import MessagePanel
from .outcome import OutcomeRegion
from .panels import VerdictPanel, complete_panel
from .regions import RenderedRegions, Screen
from .strip import StateStrip, build_notices_url


@dataclass(frozen=True, slots=True)
class PersonAct:
    """What the person just did on the page, and what it answers."""

    armed: VerdictPanel | None = None  # the panel of a verdict that they opened
    writing: MessagePanel | None = None  # the panel of a message
    extending: bool = False  # the panel that confirms more time
    problem: DomainError | None = None  # the refusal, where no panel shows it
    unsent: KeptText | None = None  # what they typed into a panel that is gone
    announcement: str = ""  # what a screen reader announces
    focus: str = ""  # the id of the element that gets the focus


NO_SCREEN, NO_ACT = Screen(), PersonAct()
# What the whole page prints of each part, if that takes a query.
QUERIED = (
    *("regions.facts", "regions.can_reveal", "strip.halts", "strip.repeats"),
    *("loaded.ended_parent", "loaded.same_actions"),
    *("banners.change", "banners.escalation", "banners.reverses", "banners.guidance"),
    *("approvals.others", "approvals.lacking", "approvals.policy_change"),
    *("conversation.remarks", "conversation.lines"),
    *("history.lines", "history.stored_pages"),
    *("decision.verbs", "decision.drafts", "outcome.next_proposal"),
)


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """One request as this person may see it; each part loads what it prints."""

    loaded: LoadedRequest
    screen: Screen
    regions: RenderedRegions
    strip: StateStrip
    banners: Banners
    approvals: ApprovalsRegion
    conversation: Conversation
    history: HistoryRegion
    decision: DecisionRegion
    outcome: OutcomeRegion
    armed: VerdictPanel | None
    writing: MessagePanel | None
    extending: bool
    announcement: str
    focus: str

    def load(self) -> None:
        """Load what the whole page prints, so that rendering waits for no query."""
        for name in QUERIED:
            attrgetter(name)(self)
        if not self.decision.verbs:
            _ = self.outcome.panel  # it stands where no verb is offered

    @property
    def id(self) -> str:
        return self.loaded.request.pk

    @property
    def url(self) -> str:
        return reverse("reviews:request_detail", args=[self.id])

    @property
    def version(self) -> int:
        return self.loaded.request.version

    @property
    def title(self) -> str:
        """The window's title: never the agent's words."""
        return f"Request {self.id}"

    @property
    def check_url(self) -> str:
        """Where an edit is previewed before it is committed."""
        return reverse("reviews:decide", args=[self.id]) + "?check=1"

    @property
    def stop_url(self) -> str:
        proposal = self.loaded.request.proposal
        return reverse("agents:stop_thread", args=[proposal.agent, proposal.thread])


def build_page(
    loaded: LoadedRequest,
    screen: Screen = NO_SCREEN,
    act: PersonAct = NO_ACT,
    answers: SentAnswers | None = None,
    *,
    is_preview: bool = False,
) -> ReviewPage:
    """Build the page of a request for a screen, after what the person did.

    A panel closes if the screen shows another version, unless it is the preview of an
    edit, which says so itself.
    """
    answers = answers or SentAnswers()
    regions = RenderedRegions(loaded, screen)
    closes = regions.moved and not is_preview
    armed = None if closes else act.armed
    if armed is not None:
        armed = complete_panel(armed, regions, answers)
    notices_url = build_notices_url(loaded)
    return ReviewPage(
        loaded=loaded,
        screen=screen,
        regions=regions,
        strip=StateStrip(loaded, regions, notices_url),
        banners=Banners(loaded, regions, act.problem),
        approvals=ApprovalsRegion(loaded),
        conversation=Conversation(loaded),
        history=HistoryRegion(loaded, notices_url),
        decision=DecisionRegion(loaded, regions, answers, act.unsent),
        outcome=OutcomeRegion(loaded, regions),
        armed=armed,
        writing=None if closes else act.writing,
        extending=act.extending and not closes,
        announcement=act.announcement,
        focus=act.focus,
    )
