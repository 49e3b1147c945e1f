"""R4, as far as it changes by itself: who was asked, and how many answered."""

from __future__ import annotations

from functools import cached_property
from urllib.parse import urlencode

from django.urls import reverse

from reviews.queries import holding
from reviews.queries.words import people

from .strip import Strip


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
        loaded = self.loaded
        others = holding.eligible(loaded.request, loaded.sealed)
        found = others.exclude(pk=loaded.person.pk).count()
        if not found:
            return "Nobody else can decide this."
        return f"{people(found, 'other person')} can decide."

    @property
    def if_silent(self) -> str:
        """What happens without an answer; empty once there is one."""
        if not self.loaded.waiting:
            return ""
        return "It expires when the time is up. Nothing is executed."
