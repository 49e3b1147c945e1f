"""The part of R4 of the request page that changes: who is asked and how many have
approved. It names nobody while the request is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from policies.models import Person
from policies.staffing import Shortage
from reviews.effects.wording import format_people, format_required_people
from reviews.governance import voters

from ..components import banners
from ..components.banners import PolicyChange
from .load import LoadedRequest

MOST_NAMES = 4  # people listed by name


@dataclass(frozen=True)
class ApprovalsRegion:
    """Approvals given and required, and who else can give one."""

    loaded: LoadedRequest

    @property
    def summary(self) -> str:
        """The approvals given and required, in words."""
        tally = self.loaded.tally
        hidden = " Names and votes are hidden until the request is decided."
        roles = format_required_people(self.loaded.sealed.steps)
        summary = f"{tally.said} ({roles})."
        shows_names = self.loaded.settled or tally.required == 1
        return summary if shows_names else summary + hidden

    @property
    def required(self) -> str:
        return format_people(self.loaded.tally.required, "approval")

    @cached_property
    def others(self) -> Sequence[Person | str]:
        """Who else could give a vote that counts. Only a number once somebody voted:
        names would reveal who has not."""
        loaded = self.loaded
        if not loaded.waiting:
            return ()
        sealed, request = loaded.sealed, loaded.request
        remaining = voters.list_remaining_voters(
            loaded.deciders, request, sealed, loaded.votes
        )
        people = [
            voter.person for voter in remaining if voter.id != loaded.person.public_id
        ]
        if not people:
            return ["Nobody" if loaded.why_not else "Nobody else"]
        known = sealed.carried or sealed.escalated_by or sealed.edited_by
        # Whose own run it is never learns who decides on it.
        if loaded.given or known or loaded.person.public_id in request.barred:
            return [format_people(len(people), "other person")]
        more = len(people) - MOST_NAMES
        return [*people[:MOST_NAMES], *([f"{more} more"] if more > 0 else [])]

    @property
    def others_label(self) -> str:
        """The label of `others`, who decide beside this person or instead of them."""
        return "Can decide" if self.loaded.why_not else "Can also decide"

    @property
    def lacking(self) -> Shortage | None:
        """Which people there are too few of; None while enough can decide."""
        loaded = self.loaded
        if not loaded.waiting:
            return None
        votes, sealed = loaded.votes, loaded.sealed
        return voters.find_shortage(loaded.deciders, loaded.request, sealed, votes)

    @property
    def if_silent(self) -> str:
        """What happens without an answer; empty once there is one."""
        if not self.loaded.waiting:
            return ""
        return "It expires. It is never approved automatically."

    @cached_property
    def policy_change(self) -> PolicyChange | None:
        """What a later policy means for it; None without, and once decided."""
        loaded = self.loaded
        if not loaded.waiting:
            return None
        return banners.find_policy_change([loaded.sealed], loaded.now)
