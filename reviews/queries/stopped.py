"""What came of a stop: how much it took back, what had begun before it, and whether
anything in its scope still runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from zlib import crc32

from journal.errors import NotFound
from policies.models import Person
from reviews.choices import Scope
from reviews.desk.components import in_flight, switches
from reviews.desk.components.in_flight import capped
from reviews.desk.components.switches import Switch
from reviews.desk.stop import result
from reviews.desk.stop.result import Line
from reviews.models import Stop


@dataclass(frozen=True)
class StoppedPage:
    """A switch with all that it met. `waiting`: requests still open in its scope."""

    switch: Switch
    met: list[Line]
    shown: list[Line]
    waiting: int
    earlier: list[Line]  # what had finished before it
    told_earlier: list[Line]
    reviewer: bool = False
    became: int | None = None  # the stop that a pause was turned into

    @cached_property
    def fates(self) -> Counter[str]:
        return Counter(line.fate for line in self.met)

    @property
    def over(self) -> bool:
        """Nothing more will change by the switch itself."""
        if self.switch.lifted_at is not None:
            return True
        return not (self.fates["running"] or self._withdrawing)

    @property
    def _withdrawing(self) -> bool:
        if self.switch.paused:
            return False
        return bool(self.waiting or self.fates["queued"])

    @property
    def halted_at(self) -> datetime:
        """When the last of it was over, or it was switched on again."""
        if self.switch.lifted_at is not None:
            return self.switch.lifted_at
        if self.switch.paused:
            return self.switch.at
        return max([self.switch.at, *(one.at for one in self.met if one.at)])

    @property
    def title(self) -> str:
        if self.became:
            return "Turned into a stop"
        if self.switch.lifted_at is not None:
            return "Switched on again"
        if self.switch.paused:
            return "Paused"
        if self.reviewer:
            return "Revoked" if self.over else "Revoking…"
        return "Halted" if self.over else "Halting…"

    @property
    def icon(self) -> str:
        if self.switch.lifted_at is not None:
            return "stop" if self.became else "ok"
        if not self.over:
            return "run"
        return "pause" if self.switch.paused else "stop"

    @property
    def figures(self) -> str:
        """`2 cancelled, 1 had already finished`."""
        said = list(self._kept() if self.switch.paused else self._taken_back())
        return ", ".join(said)

    def _kept(self) -> Iterator[str]:
        yield "nothing was cancelled"
        if late := self.fates["late"]:
            yield f"the time of {capped(late)} to run was over"
        if self.fates["kept"]:
            yield f"{self.fates['kept']} kept in the queue"
        if self.waiting:
            yield f"{capped(self.waiting)} still open to decide"
        yield from self._begun()

    def _taken_back(self) -> Iterator[str]:
        cancelled = self.fates["cancelled"] + self.fates["withdrawn"]
        if cancelled:
            yield f"{capped(cancelled)} cancelled"
        if self.fates["asked"]:
            yield f"{capped(self.fates['asked'])} asked again of others"
        if self._withdrawing:
            yield f"{capped(self.waiting + self.fates['queued'])} still to cancel"
        elif not (cancelled or self.fates["asked"]):
            yield "nothing to cancel"
        yield from self._begun()

    def _begun(self) -> Iterator[str]:
        if self.fates["running"]:
            yield f"{self.fates['running']} still running"
        if done := self.fates["finished"] + self.fates["failed"]:
            yield f"{done} had already begun and finished"
        if self.fates["unknown"]:
            yield f"of {self.fates['unknown']} nobody knows"

    @property
    def before(self) -> str:
        """What had finished before it, as the heading of its list."""
        lost = sum(line.fate == "unknown_before" for line in self.earlier)
        done = len(self.earlier) - lost
        span = "month" if self.reviewer else "hour"
        what = f"{capped(done)} had finished in the {span} before it"
        return f"{what}, of {lost} nobody knows" if lost else what

    @property
    def hidden_earlier(self) -> int:
        return len(self.earlier) - len(self.told_earlier)

    @property
    def hidden(self) -> int:
        return len(self.met) - len(self.shown)

    @property
    def etag(self) -> str:
        fates = [f"{one.proposal}{one.fate}" for one in self.met]
        state = [self.title, self.figures, self.switch.asked, *fates]
        return f"{crc32(repr(state).encode()):x}"


def page(person: Person, pk: int) -> StoppedPage:
    """Raises NotFound for a switch that does not concern this person."""
    row = Stop.objects.filter(pk=pk).first()
    if row is None or not switches.concerning(person, [row]):
        raise NotFound
    scope = Scope(row.scope)
    found, earlier = list(result.met(row)), list(result.earlier(scope, row.key, row.at))
    return StoppedPage(
        switch=switches.lines(person, [row])[0],
        met=found,
        shown=result.told(person, found),
        waiting=in_flight.waiting(scope, row.key),
        earlier=earlier,
        told_earlier=result.told(person, earlier),
        reviewer=scope is Scope.REVIEWER,
        became=_successor(row),
    )


def _successor(row: Stop) -> int | None:
    """`stops.stop` ends a pause and begins the stop at one moment."""
    if row.lifted_at is None:
        return None
    found = Stop.objects.filter(scope=row.scope, key=row.key, at=row.lifted_at)
    return found.values_list("pk", flat=True).first()
