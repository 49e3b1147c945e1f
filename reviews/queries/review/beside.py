"""R7, and what stands beside the regions: the log, the hand-over, the hidden values."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from reviews import permissions
from reviews.desk.components import evidence_links, log_lines, undo
from reviews.desk.request import escalation as escalations
from reviews.evidence import reveals
from reviews.permissions import Permission

from .asked import Asked


class Beside(Asked):
    """What happened to the request until now."""

    # R7
    @property
    def opened_at(self) -> datetime:
        return self.loaded.request.opened_at

    @property
    def sealed_at(self) -> datetime:
        return self.loaded.sealed.created_at

    @cached_property
    def hidden(self) -> bool:
        """Whether there are values that this person may ask to see."""
        if not permissions.allowed(self.loaded.person, Permission.REVEAL):
            return False
        return bool(reveals.hidden(self.loaded.sealed))

    @cached_property
    def kept_pages(self) -> list[evidence_links.Kept]:
        """The pages that deciders had on the screen, as far as this person may."""
        loaded = self.loaded
        return evidence_links.links(loaded.person, loaded.request, loaded.decisions)

    @cached_property
    def history(self) -> list[log_lines.Told]:
        return log_lines.history(self.loaded.person, self.loaded.request)

    @cached_property
    def escalation(self) -> escalations.Panel | None:
        """What a supervisor is told beside the request that was handed up."""
        return escalations.panel(self.loaded)

    @cached_property
    def reverses(self) -> undo.Reverses | None:
        """The effect that this would undo, where a person proposed it for that."""
        return undo.reverses(self.loaded.request.proposal)

    @cached_property
    def guidance(self) -> str:
        """A supervisor's advice on a request that was given back."""
        return escalations.guidance(self.loaded)
