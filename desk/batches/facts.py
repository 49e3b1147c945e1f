"""What the members of a batch have in common, and what the agent says about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from reviews.batches.membership import BatchMember
from reviews.choices import BatchStatus
from reviews.effects.wording import format_required_people
from reviews.presenters.common import build_reversibility
from reviews.presenters.shapes import Reversibility

from ..components import banners, formatting
from ..components.banners import PolicyChange
from ..components.formatting import DeadlineClock
from .load import LoadedBatch


@dataclass(frozen=True)
class BatchFacts:
    """The facts that are equal for all members, printed once."""

    loaded: LoadedBatch

    @property
    def first(self) -> BatchMember:
        return self.loaded.members[0]

    @property
    def risk(self) -> str:
        return self.first.version.risk

    @property
    def policy(self) -> int:
        return self.first.version.policy.number

    @cached_property
    def policy_change(self) -> PolicyChange | None:
        """What a policy change since the proposals means for them; None without one."""
        if self.loaded.over or self.loaded.told is not None:
            return None
        versions = (one.version for one in self.loaded.members)
        return banners.find_policy_change(versions, self.loaded.now)

    @property
    def rules(self) -> list[str]:
        rules = [rule["text"] for rule in self.first.version.rules]
        return rules or ["Policy requires approval for this tool."]

    @property
    def asked(self) -> str:
        """The approvals that each member needs: `1 reviewer`."""
        return format_required_people(self.first.version.steps)

    @property
    def proposed(self) -> tuple[datetime, datetime]:
        """When the first and the last member were opened."""
        times = [member.request.opened_at for member in self.loaded.members]
        return min(times), max(times)

    @property
    def reversal(self) -> Reversibility:
        return build_reversibility(self.loaded.definition)

    @property
    def clock(self) -> DeadlineClock:
        """The earliest deadline, which applies to the whole batch."""
        first = min(self.loaded.members, key=lambda member: member.request.expires_at)
        return formatting.build_request_clock(first.request, self.loaded.now)

    @property
    def forming_until(self) -> datetime | None:
        """Until when others may still join; None when the batch is closed."""
        batch = self.loaded.batch
        return batch.closes_at if batch.status == BatchStatus.FORMING else None


MAX_RATIONALE = 280  # characters of a rationale that differs from the usual one


@dataclass(frozen=True, slots=True)
class DifferentRationale:
    """The agent's rationale for a member, where it differs from the usual one."""

    id: str
    label: str
    text: str


class BatchRationales:
    """The agent's rationales: untrusted text, to be printed as such. `labels` name the
    members."""

    def __init__(
        self, members: Sequence[BatchMember], labels: Mapping[str, str]
    ) -> None:
        self._labels = labels
        self._texts = [
            (member.id, member.version.revision.rationale) for member in members
        ]

    @cached_property
    def rationale(self) -> str:
        """The rationale that most members share."""
        return Counter(text for _, text in self._texts).most_common(1)[0][0]

    @property
    def identical(self) -> int:
        """The number of members with that rationale."""
        return sum(text == self.rationale for _, text in self._texts)

    @cached_property
    def different(self) -> list[DifferentRationale]:
        return [
            DifferentRationale(
                pk,
                self._labels[pk],
                text[:MAX_RATIONALE] + (" […]" if len(text) > MAX_RATIONALE else ""),
            )
            for pk, text in self._texts
            if text != self.rationale
        ]
