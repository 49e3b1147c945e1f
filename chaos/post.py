"""What letters to agents and mails to people come to, together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from . import check_delivery
from . import mails as chaos_mails
from .check_delivery import Deliveries
from .mails import Mails
from .receivers import Postbook
from .run_result import Ran


@dataclass
class Post:
    """Of a run that is quiet."""

    letters: Deliveries = field(default_factory=Deliveries)
    mails: Mails = field(default_factory=Mails)

    @property
    def violations(self) -> dict[str, list[str]]:
        """Everything that must be empty, by its name."""
        letters, mails = self.letters, self.mails
        return {
            "outcomes that an agent did not hear of": letters.unheard,
            "letters with a bad signature": letters.unsigned,
            "names and bodies that changed": letters.unlike,
            "letters after the agent's word": letters.untimely,
            "outcomes not acted on once": letters.unacted,
            "letters not kept": letters.unkept,
            "mails missing": mails.missing,
            "mails that nobody planned": mails.unplanned,
        }

    @property
    def claims(self) -> Iterator[tuple[str, int, int]]:
        """What must hold, on how many trials, and how often it did not."""
        of, mails = self.letters, self.mails
        unheard, unacted = len(of.unheard), len(of.unacted)
        yield (
            "outcomes that an agent with an endpoint did not hear of",
            of.ends,
            unheard,
        )
        yield "outcomes not acted on exactly once", of.acts, unacted
        yield "letters with a bad signature", of.arrivals, len(of.unsigned)
        yield (
            "letters with two bodies, outcomes with two names",
            of.names,
            len(of.unlike),
        )
        begun = "letters begun after the agent's word was answered"
        yield begun, of.acknowledged, len(of.untimely)
        yield "letters left over, or delivered to nobody", of.letters, len(of.unkept)
        wrong = len(mails.missing) + len(mails.unplanned)
        yield (
            "mails promised that did not arrive, or not promised",
            mails.planned,
            wrong,
        )

    @property
    def numbers(self) -> dict[str, dict[str, int]]:
        """How letters were answered and where they stand, and of mails how many."""
        of = self.mails
        counted = {
            "arrived": of.arrived,
            "came twice": of.twice,
            "let go, nothing left to say": of.let_go,
            "later, an hour's share is used up": of.later,
        }
        return {
            "letters answered": dict(self.letters.answers.most_common()),
            "letters": dict(self.letters.stands.most_common()),
            "mails": counted,
        }


def look(ran: Ran, book: Postbook, traces: Path) -> Post:
    """Once all is quiet."""
    return Post(check_delivery.look(ran, book, traces), chaos_mails.look(book))
