"""What all members of a batch have in common beside their arguments."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from reviews.batches.membership import Member
from reviews.choices import BatchStatus
from reviews.desk.batches.load import Loaded
from reviews.desk.components import formatting
from reviews.desk.components.formatting import Clock
from reviews.effects.wording import asked_of
from reviews.presenters.common import reversal
from reviews.presenters.shapes import Reversal


class Facts:
    """Said once, for they are the same for each."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.count = len(loaded.members)
        self.agent = loaded.batch.agent
        self.tool = loaded.batch.tool.name
        self.tool_version = loaded.batch.tool.version

    @cached_property
    def first(self) -> Member:
        return self.loaded.members[0]

    @property
    def risk(self) -> str:
        return self.first.version.risk

    @property
    def tier(self) -> str:
        return self.first.version.tier

    @property
    def policy(self) -> int:
        return self.first.version.policy.number

    @property
    def rules(self) -> list[str]:
        said = [rule["text"] for rule in self.first.version.rules]
        return said or ["The policy wants a person for this tool."]

    @property
    def asked(self) -> str:
        """Whose approvals each of them needs: `1 reviewer`."""
        return asked_of(self.first.version.steps)

    @property
    def proposed(self) -> tuple[datetime, datetime]:
        times = [member.request.opened_at for member in self.loaded.members]
        return min(times), max(times)

    @property
    def reversal(self) -> Reversal:
        return reversal(self.loaded.definition)

    @property
    def clock(self) -> Clock:
        """The earliest deadline is everybody's."""
        first = min(self.loaded.members, key=lambda member: member.request.expires_at)
        return formatting.of(first.request, self.loaded.now)

    @property
    def forming_until(self) -> datetime | None:
        """Until when others may still join."""
        batch = self.loaded.batch
        return batch.closes_at if batch.status == BatchStatus.FORMING else None
