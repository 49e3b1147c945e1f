"""What the agent says of a batch: once for most members, and where it differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from reviews.batches.membership import Member

MOST = 280  # characters of a text that differs from the others


@dataclass(frozen=True, slots=True)
class Said:
    """What the agent says of a member, where it is not what it says of most."""

    id: str
    label: str
    text: str


class Words:
    """Untrusted text of each member, to be printed as such; `labels` name them."""

    def __init__(self, members: Sequence[Member], labels: Mapping[str, str]) -> None:
        self._labels = labels
        self._texts = [
            (member.id, member.version.revision.rationale) for member in members
        ]

    @cached_property
    def rationale(self) -> str:
        """What it says of most of them."""
        return Counter(text for _, text in self._texts).most_common(1)[0][0]

    @property
    def identical(self) -> int:
        return sum(text == self.rationale for _, text in self._texts)

    @cached_property
    def different(self) -> list[Said]:
        return [
            Said(
                pk, self._labels[pk], text[:MOST] + (" […]" if len(text) > MOST else "")
            )
            for pk, text in self._texts
            if text != self.rationale
        ]
