"""R4, as far as it changes by itself: who was asked, and how many answered."""

from __future__ import annotations

from functools import cached_property
from urllib.parse import urlencode

from django.urls import reverse

from reviews.effects.wording import asked_of, listed, people
from reviews.governance import voters

from .strip import Strip

SHOWN = 4  # people by name


class Asked(Strip):
    """The approvals that are needed, without a name."""

    # R4, as far as it changes by itself
    @property
    def stop_url(self) -> str:
        return reverse("agents:stop_thread", args=[self.agent, self.thread])

    @property
    def stop_any_url(self) -> str:
        """The same from the header, where the tool may be stopped as well."""
        return f"{self.stop_url}?{urlencode({'tool': self.tool})}"

    @property
    def squares(self) -> list[bool]:
        return self.loaded.tally.squares

    @property
    def approvals_said(self) -> str:
        tally = self.loaded.tally
        hidden = " Names and answers are hidden until it is decided."
        if self.loaded.settled:
            return f"{tally.said} given, {self._roles()} asked."
        said = f"{tally.said} given: {self._roles()} must approve."
        return said + (hidden if tally.required > 1 else "")

    def _roles(self) -> str:
        return asked_of(self.loaded.sealed.steps)

    @cached_property
    def others(self) -> str:
        """Who else could give a vote that counts. Once somebody voted it is a number:
        names would tell who has not yet."""
        loaded = self.loaded
        if not loaded.waiting:
            return ""
        sealed, request = loaded.sealed, loaded.request
        found = voters.left_now(loaded.deciders, request, sealed, loaded.votes)
        names = [str(one.person) for one in found if one.id != loaded.person.public_id]
        if not names:
            return "nobody else"
        if loaded.given or sealed.carried or sealed.escalated_by or self._is_own:
            return people(len(names), "other person")
        return listed(names, most=SHOWN)

    @property
    def lacking(self) -> str:
        """Which people there are too few of; empty while enough can decide."""
        loaded = self.loaded
        if not loaded.waiting:
            return ""
        votes, sealed = loaded.votes, loaded.sealed
        return voters.lacking_now(loaded.deciders, loaded.request, sealed, votes)

    @property
    def _is_own(self) -> bool:
        """Whose own run it is never learns who decides on it."""
        return self.loaded.person.public_id in self.loaded.request.barred

    @property
    def if_silent(self) -> str:
        """What happens without an answer; empty once there is one."""
        if not self.loaded.waiting:
            return ""
        return "It expires when the time is up. Nothing is executed."
