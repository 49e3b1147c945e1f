"""The faults: what there is, when each is due, and doing it to the stage."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import redis

from journal import faults

from . import processes
from .network import DATA
from .options import LEASE_S, Options
from .stage import Slot, Stage

# kind -> (how many of a hundred, how it is called)
KINDS = {
    "worker": (16, "worker killed, its whole group"),
    "child": (16, "one process of a worker killed"),
    "web": (12, "web process killed"),
    "postgres": (14, "PostgreSQL restarted, immediate"),
    "valkey": (9, "Valkey killed"),
    "flush": (9, "Valkey emptied"),
    "pause": (10, "worker frozen past its lease"),
    "point": (14, "a named point: killed, broken or frozen"),
    "cut": (9, "a host cut off from all others"),
    "outage": (5, "PostgreSQL and Valkey cut off"),
}
CABLES = {"cut", "outage"}  # only where hosts have a network of their own
TWICE = 2  # of each, however short the run
DOWN_S = 1.0  # at most, before a server is started again
OVERSLEEP_S = (1.0, 3.0)  # beyond the lease
CUT_S = (0.2, 4.0)  # and one cut of three as long as a sleep
FIRST_AWAKE_S = 0.3  # the master sleeps so much longer, or it would kill its children
UNMET_S = 5.0  # after which an armed point that nobody passed is taken down
# Points that somebody passes every few seconds; of the others one in so many is tried.
BUSY = (
    "proposed_uncommitted", "decided_uncommitted", "grant_uncommitted",
    "window_uncommitted", "before_nudge", "before_announce", "message_uncommitted",
    "message_claimed", "before_claim", "claim_uncommitted", "after_claim", "rechecked",
    "before_effect", "after_effect", "before_record", "record_uncommitted",
    "after_record", "before_done", "sequence_uncommitted",
)  # fmt: skip
SELDOM = 5
# Where somebody holds a claim who is to sleep past its lease.
HOLDING = (
    "after_claim", "rechecked", "before_effect", "after_effect", "before_record"
)  # fmt: skip
ACTIONS = (faults.Action.KILL, faults.Action.RAISE, faults.Action.STOP)


@dataclass
class Strike:
    """One fault as it happened. Times are of the clock on the wall."""

    kind: str
    at: float
    until: float  # a server answers again, or who was frozen goes on
    target: str = ""
    pids: tuple[int, ...] = ()
    slot: str = ""  # whose processes they are
    slots: tuple[str, ...] = ()  # all that were on a host

    @property
    def slept(self) -> bool:
        """Whether somebody was away for longer than a lease."""
        return self.until > self.at + LEASE_S


@dataclass
class Sleeper:
    """A frozen worker, or web process, and when it goes on."""

    slot: Slot
    strike: Strike
    wake_at: float
    leader_at: float = 0.0


@dataclass
class Armed:
    """A point that somebody will pass."""

    name: str
    action: faults.Action
    flag: Path
    since: float
    kind: str


@dataclass
class Cut:
    """A cable that is out, and when it is put back."""

    host: str
    strike: Strike
    mend_at: float


@dataclass
class Arsenal:
    """Draws what comes next from a seed, and does it. Only the main thread calls it."""

    stage: Stage
    options: Options
    strikes: list[Strike] = field(default_factory=list)
    sleepers: list[Sleeper] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    armed: list[Armed] = field(default_factory=list)
    unmet: int = 0

    def __post_init__(self) -> None:
        self._drawn = random.Random(self.options.seed)  # noqa: S311 - drawn again
        self._kinds = self._sequence()
        self.due = time.monotonic() + self._drawn.uniform(*self.options.between)
        self._ways: dict[str, Callable[[], Strike | None]] = {
            "worker": self._worker,
            "child": self._child,
            "web": self._web,
            "postgres": self._postgres,
            "valkey": self._valkey,
            "flush": self._flush,
            "pause": self._pause,
            "point": self._point,
            "cut": self._cut,
            "outage": self._outage,
        }

    @property
    def kinds(self) -> list[str]:
        """What there is to be had on this machine."""
        real = self.stage.network.real
        return [kind for kind in KINDS if real or kind not in CABLES]

    def _sequence(self) -> Iterator[str]:
        """Each kind twice, then by weight."""
        first = self.kinds * TWICE
        self._drawn.shuffle(first)
        yield from first
        weights = [KINDS[kind][0] for kind in self.kinds]
        while True:
            yield self._drawn.choices(self.kinds, weights)[0]

    def step(self, *, striking: bool) -> None:
        """What is due now: the next fault, and the end of a sleep or of a cut."""
        self._wake()
        self._mend()
        self._watch_points()
        if striking and time.monotonic() >= self.due:
            strike = self._ways[next(self._kinds)]()
            if strike is not None:
                self.strikes.append(strike)
            self.due = time.monotonic() + self._drawn.uniform(*self.options.between)

    @property
    def enough(self) -> bool:
        """Whether every kind was there as often as was promised."""
        done = [strike.kind for strike in self.strikes]
        return all(done.count(kind) >= TWICE for kind in self.kinds)

    def stand_down(self) -> None:
        """No more: whoever sleeps goes on, cables are put back, and what nobody met is
        taken away."""
        for cut in self.cuts:
            cut.mend_at = 0.0
        self._mend()
        for one in self.armed:
            with contextlib.suppress(FileNotFoundError):
                one.flag.unlink()
        self.armed.clear()
        for sleeper in self.sleepers:
            sleeper.wake_at = 0.0
        while self.sleepers:
            self._wake()
            time.sleep(0.05)

    def _one(self, slots: list[Slot]) -> Slot | None:
        """Somebody who is up and about."""
        fit = [slot for slot in slots if slot.alive and not slot.frozen]
        return self._drawn.choice(fit) if fit else None

    def _worker(self) -> Strike | None:
        slot = self._one(self.stage.workers)
        if slot is None:
            return None
        pids = tuple(processes.group(slot.child.pid))
        now = time.time()
        slot.kill()
        return Strike("worker", now, now, slot.name, pids)

    def _child(self) -> Strike | None:
        slot = self._one(self.stage.workers)
        children = self._pool(slot) if slot else []
        if slot is None or not children:
            return None
        pid = self._drawn.choice(children)
        now = time.time()
        processes.signal_one(pid, signal.SIGKILL)
        return Strike("child", now, now, slot.name, (pid,))

    def _pool(self, slot: Slot) -> list[int]:
        """Its task processes. The one that tells the time is started last, and nobody
        would start it again: that is for who kills the whole worker."""
        children = processes.group(slot.child.pid)[1:]
        beat = self._beats.setdefault(
            (slot.name, slot.starts), max(children, default=0)
        )
        return [pid for pid in children if pid != beat]

    _beats: dict[tuple[str, int], int] = field(default_factory=dict)

    def _web(self) -> Strike | None:
        slot = self._one(self.stage.webs)
        if slot is None:
            return None
        now = time.time()
        slot.kill()
        return Strike("web", now, now, slot.name)

    def _postgres(self) -> Strike:
        return self._restart("postgres", signal.SIGQUIT)

    def _valkey(self) -> Strike:
        return self._restart("valkey", signal.SIGKILL)

    def _restart(self, name: str, number: signal.Signals) -> Strike:
        slot, began = self.stage.slots[name], time.time()
        slot.kill(number)
        time.sleep(self._drawn.uniform(0.0, DOWN_S))
        slot.run()
        return Strike(name, began, time.time(), name)

    def _flush(self) -> Strike:
        socket = str(self.stage.here.valkey_socket)
        with redis.Redis(unix_socket_path=socket) as client:
            client.flushall()
        now = time.time()
        return Strike("flush", now, now, "valkey")

    def _cut(self) -> Strike | None:
        """One of three for longer than a lease: what its workers held is done
        elsewhere, while they still believe that they hold it."""
        long = LEASE_S + self._drawn.uniform(*OVERSLEEP_S)
        short = self._drawn.uniform(*CUT_S)
        host = self._drawn.choice(self.stage.network.apps).name
        return self._pull("cut", host, short if self._drawn.randrange(3) else long)

    def _outage(self) -> Strike | None:
        return self._pull("outage", DATA, self._drawn.uniform(*CUT_S))

    def _pull(self, kind: str, host: str, seconds: float) -> Strike | None:
        """One cable at a time, or nobody would be left to go on."""
        if self.cuts:
            return None
        self.stage.network.cut(host)
        now = time.time()
        slots = tuple(s.name for s in self.stage.slots.values() if s.host == host)
        strike = Strike(kind, now, now + seconds, host, slots=slots)
        self.cuts.append(Cut(host, strike, time.monotonic() + seconds))
        return strike

    def _mend(self) -> None:
        for cut in list(self.cuts):
            if time.monotonic() >= cut.mend_at:
                self.stage.network.mend(cut.host)
                cut.strike.until = time.time()
                self.cuts.remove(cut)

    def _pause(self) -> Strike | None:
        """Of three, two sleep with a claim in their hands, and one wherever it is."""
        if self._drawn.randrange(3):
            self._arm("pause", self._drawn.choice(HOLDING), faults.Action.STOP)
            return None  # it counts when somebody passes
        slot = self._one(self.stage.workers)
        return self._freeze("pause", slot, slot.name) if slot else None

    def _freeze(self, kind: str, slot: Slot, target: str) -> Strike:
        pids = tuple(processes.group(slot.child.pid))
        processes.signal_all(slot.child.pid, signal.SIGSTOP)
        slot.frozen = True
        sleep = LEASE_S + self._drawn.uniform(*OVERSLEEP_S)
        now = time.time()
        strike = Strike(kind, now, now + sleep, target, pids, slot.name)
        self.sleepers.append(Sleeper(slot, strike, time.monotonic() + sleep))
        return strike

    def _wake(self) -> None:
        now = time.monotonic()
        for sleeper in list(self.sleepers):
            leader = sleeper.slot.child.pid
            if sleeper.leader_at and now >= sleeper.leader_at:
                processes.signal_all(leader, signal.SIGCONT)
                sleeper.slot.frozen = False
                self.sleepers.remove(sleeper)
            elif not sleeper.leader_at and now >= sleeper.wake_at:
                # First those who work: what they have to say must be refused.
                for pid in processes.group(leader)[1:]:
                    processes.signal_one(pid, signal.SIGCONT)
                sleeper.strike.until = time.time()
                sleeper.leader_at = now + FIRST_AWAKE_S

    def _point(self) -> None:
        """Arm one; it counts when somebody passes."""
        rare = not self._drawn.randrange(SELDOM) and not self.options.short
        name = self._drawn.choice(sorted(faults.POINTS) if rare else BUSY)
        self._arm("point", name, self._drawn.choice(ACTIONS))

    def _arm(self, kind: str, name: str, action: faults.Action) -> None:
        flag = self.stage.faults / name
        if flag.exists():
            return
        draft = flag.with_name(f".draft-{name}")
        draft.write_text(action)
        draft.rename(flag)
        self.armed.append(Armed(name, action, flag, time.monotonic(), kind))

    def _watch_points(self) -> None:
        for one in list(self.armed):
            if not one.flag.exists():
                self.armed.remove(one)
                self._met(one)
            elif time.monotonic() > one.since + UNMET_S:
                self.armed.remove(one)
                self.unmet += 1
                with contextlib.suppress(FileNotFoundError):
                    one.flag.unlink()
                self._arm(one.kind, self._drawn.choice(BUSY), one.action)

    def _met(self, one: Armed) -> None:
        now, target = time.time(), f"{one.name}: {one.action}"
        if one.action is faults.Action.STOP and (frozen := self._frozen()):
            slot, pid = frozen
            strike = self._freeze(one.kind, slot, target)
            strike.pids = (pid,)
        else:
            strike = Strike(one.kind, now, now, target)
        self.strikes.append(strike)

    def _frozen(self) -> tuple[Slot, int] | None:
        """Whose process stopped itself: all of that group must, or its master would
        end it for the time that it takes."""
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            for file in self.stage.faults.glob(f"{faults.STOPPED}*"):
                pid = int(file.name.removeprefix(faults.STOPPED))
                leader = processes.group_of(pid)
                for slot in self.stage.slots.values():
                    if slot.child.pid == leader and not slot.frozen:
                        return slot, pid
            time.sleep(0.02)
        return None
