"""Named points of the product (journal/failpoints.py) at which whoever passes first is
killed, broken or frozen."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from journal import failpoints

from . import processes
from .cluster import Stage
from .slots import Slot

UNMET_S = 5.0  # after which an armed point that nobody passed is taken down
# Points that somebody passes every few seconds; of the others one in so many is tried.
BUSY = (
    "proposed_uncommitted", "decided_uncommitted", "grant_uncommitted",
    "window_uncommitted", "before_nudge", "before_announce", "message_uncommitted",
    "message_claimed", "before_claim", "claim_uncommitted", "after_claim", "rechecked",
    "before_effect", "after_effect", "before_record", "record_uncommitted",
    "after_record", "before_done", "sequence_uncommitted", "mail_taken",
    "letters_uncommitted", "letter_taken", "letter_answered", "letter_uncommitted",
    "acknowledged_uncommitted",
)  # fmt: skip
SELDOM = 5
# Where somebody holds a claim who is to sleep past its lease.
HOLDING = (
    "after_claim", "rechecked", "before_effect", "after_effect", "before_record",
    "letter_taken", "letter_answered",
)  # fmt: skip
ACTIONS = (failpoints.Action.KILL, failpoints.Action.RAISE, failpoints.Action.STOP)


@dataclass
class Armed:
    """A point that somebody will pass."""

    name: str
    action: failpoints.Action
    flag: Path
    since: float
    kind: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """A process that froze at a point."""

    name: str
    kind: str
    slot: Slot
    pid: int


@dataclass
class Points:
    """What is armed now."""

    stage: Stage
    drawn: random.Random
    armed: list[Armed] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)  # by point, armed or passed
    unmet: int = 0

    def anywhere(self, kind: str, *, rare: bool) -> None:
        """Any point and any action; now and then one that is seldom passed."""
        rare = not self.drawn.randrange(SELDOM) and rare
        name = self.drawn.choice(sorted(failpoints.POINTS) if rare else BUSY)
        self._arm(kind, name, self.drawn.choice(ACTIONS))

    def holding(self, kind: str) -> None:
        """Freeze whoever holds a claim."""
        self._arm(kind, self.drawn.choice(HOLDING), failpoints.Action.STOP)

    def _arm(self, kind: str, name: str, action: failpoints.Action) -> None:
        flag = self.stage.faults / name
        if flag.exists():
            return
        draft = flag.with_name(f".draft-{name}")
        draft.write_text(action)
        draft.rename(flag)
        self.armed.append(Armed(name, action, flag, time.monotonic(), kind))
        self.kinds[name] = kind

    def met(self) -> Iterator[Armed]:
        """Those at which somebody died or broke. What nobody passes is taken down, and
        a busy one armed instead."""
        for one in list(self.armed):
            if not one.flag.exists():
                self.armed.remove(one)
                if one.action is not failpoints.Action.STOP:
                    yield one
            elif time.monotonic() > one.since + UNMET_S:
                self.unmet += 1
                self._disarm(one)
                self._arm(one.kind, self.drawn.choice(BUSY), one.action)

    def disarm(self) -> None:
        for one in list(self.armed):
            self._disarm(one)

    def _disarm(self, one: Armed) -> None:
        self.armed.remove(one)
        with contextlib.suppress(FileNotFoundError):
            one.flag.unlink()

    def stopped(self) -> Iterator[Stopped]:
        """Whose process stopped itself, whether or not its point still counts as armed:
        somebody must wake it. All of that group must be frozen, or its master would end
        it for the time that it takes."""
        for file in self.stage.faults.glob(f"{failpoints.STOPPED}*"):
            pid = int(file.name.removeprefix(failpoints.STOPPED))
            leader = processes.stopped_group(pid)
            for slot in self.stage.slots.values():
                if slot.child.pid == leader and not slot.frozen:
                    name = file.read_text()
                    yield Stopped(name, self.kinds[name], slot, pid)
