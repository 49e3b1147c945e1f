"""The name of what happened to a proposal: a function of what happened, so that no row
is needed to know it, and it is the same after every crash of anybody."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings

from journal import ids


def settled(proposal: str) -> str:
    """Of what was answered at once, or of the end of the question to people."""
    return _of(proposal, "settled")


def ended(proposal: str, status: str, fence: int) -> str:
    """Of one attempt's end; a person who says later what is true makes another."""
    return _of(proposal, "ended", status, fence)


def offered(proposal: str, fence: int, again: datetime | None = None) -> str:
    """Of a grant to redeem; the first one is what the people's answer came to. `again`
    is when a person let it be tried once more: that is another offer."""
    if not fence:
        return settled(proposal)
    more = [again.isoformat()] if again else []
    return _of(proposal, "offered", fence, *more)


def asked(proposal: str, event: str, version: int) -> str:
    """Of a question put to people: nothing that an agent acts upon."""
    return _of(proposal, event, version)


def _of(proposal: str, *what: str | int) -> str:
    return ids.derived("o", settings.HOLDPOINT.tag_key, "outcome", proposal, *what)
