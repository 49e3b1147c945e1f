"""The gate as a small automaton in memory: what the gate does with one proposal,
written once more without a database. A refusal is its error code."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

SUPERVISOR, REVIEWER = "supervisor", "reviewer"
ROLES = {
    "rita": REVIEWER,
    "tom": REVIEWER,
    "sue": SUPERVISOR,
    "sam": SUPERVISOR,
    "adam": "administrator",
    "otto": "auditor",
    "owen": "agent owner",
}
OPEN = {"pending", "recallable"}
STEPS = {
    "approve": [(REVIEWER, 1)],
    "escalate": [(SUPERVISOR, 2)],
}
Step = tuple[str, int]
# What an agent is told that redeems what a switch keeps.
REFUSED_AS = {
    "window_closed": "grant_expired",
    "stopped": "agent_stopped",
    "taken_back": "precondition",
    "paused": "conflict",
}
MOST_ATTEMPTS = 5


class Refused(Exception):
    """The gate says no, with this code; nothing has changed."""


def tier_of(tool: str, big: bool) -> str:
    return "escalate" if big or tool == "deploy" else "approve"


def fills(role: str, step: str) -> bool:
    return role == step or (role == SUPERVISOR and step == REVIEWER)


@dataclass
class Switches:
    """What is switched off: by kind and name, in which mode."""

    off: dict[tuple[str, str], str] = field(default_factory=dict)
    asked_by: str = ""  # to switch everything on again

    def turn_off(self, scope: str, key: str, mode: str) -> None:
        now = self.off.get((scope, key))
        if now == "stopped" or now == mode:
            raise Refused("conflict")
        self.off[scope, key] = mode
        if scope == "everything":
            self.asked_by = ""

    def turn_on(self, scope: str, key: str, person: str) -> None:
        """Everything takes two people: the first one only asks."""
        if scope == "everything" and not self.asked_by:
            self.asked_by = person
        elif scope == "everything" and self.asked_by == person:
            raise Refused("not_yours")
        else:
            del self.off[scope, key]

    def over(self, keys: Mapping[str, str]) -> str:
        """The strictest mode of these."""
        modes = {self.off.get(one) for one in keys.items()}
        return next((one for one in ("stopped", "paused") if one in modes), "")

    def check_may_propose(self, keys: Mapping[str, str]) -> None:
        if self.over(keys) == "stopped":
            raise Refused("agent_stopped")


@dataclass
class Modelled:
    """One proposal: its question, its grant and its execution, and what happened."""

    tool: str
    big: bool
    status: str = "pending"
    version: int = 1
    tier: str = ""
    steps: list[Step] = field(default_factory=list)
    votes: dict[str, int] = field(default_factory=dict)  # who counts, for which step
    said: set[str] = field(default_factory=set)  # who has spoken on this version
    carried: set[str] = field(default_factory=set)
    escalated_by: set[str] = field(default_factory=set)
    escalated: bool = False
    held_by: str = ""  # who recalled it has it in hand
    held_since: int = 0
    late: bool = False  # the deadline is over
    window_over: bool = False  # of the recall
    stop: str = ""  # paused, stopped
    taken_back: bool = False  # by a stop since it was granted, lifted or not
    grant: str = ""
    execution: str = ""
    expired_grant: bool = False  # the execution window is over
    lease_over: bool = False
    resting: bool = False  # queued again, and not due yet
    code: str = ""  # why it was refused, or cannot be known
    fence: int = 0
    attempts: int = 0
    over: str = ""  # why the claim is for a look-up alone
    effects: int = 0

    def __post_init__(self) -> None:
        self.tier = tier_of(self.tool, self.big)
        self.steps = list(STEPS[self.tier])

    @property
    def recall(self) -> bool:
        return self.tool != "deploy"  # critical effects have no window here

    @property
    def held(self) -> str:
        """What keeps its effect from beginning, as the code of a refusal."""
        if self.taken_back and self.stop != "stopped":
            return "taken_back"
        return self.stop

    # People.

    def check_open(self) -> None:
        if self.status == "expired" or (self.status == "pending" and self.late):
            raise Refused("expired")
        if self.status in {"withdrawn", "superseded"}:
            raise Refused("withdrawn")
        if self.status not in OPEN:
            raise Refused("decided")

    def check_may_speak(self, person: str, verdict: str) -> str:
        if verdict == "modify" and self.status == "pending":
            self.check_person(person)  # nobody is asked outside for a stranger
        self.check_open()
        if self.status == "recallable" and verdict != "reject":
            raise Refused("decided")
        if self.stop == "stopped":
            raise Refused("withdrawn")
        role = self.check_person(person)
        if self.held_by not in {"", person}:
            raise Refused("held")
        return role

    def check_person(self, person: str) -> str:
        role = ROLES[person]
        if role not in {REVIEWER, SUPERVISOR}:
            raise Refused("not_yours")
        if person in self.escalated_by:
            raise Refused("escalated")
        if person in self.carried | self.said:
            raise Refused("not_yours")
        if not any(fills(role, step) for step, _ in self.steps):
            raise Refused("not_yours")
        return role

    def lacking(self) -> list[int]:
        given = list(self.votes.values())
        return [needed - given.count(i) for i, (_, needed) in enumerate(self.steps)]

    def place(self, role: str) -> int | None:
        lacking = self.lacking()
        free = [
            i
            for i, (step, _) in enumerate(self.steps)
            if lacking[i] > 0 and fills(role, step)
        ]
        own = [i for i in free if self.steps[i][0] == role]
        return next(iter([*own, *free]), None)

    def approve(self, person: str) -> None:
        role = self.check_may_speak(person, "approve")
        step = self.place(role)
        if step is None:
            raise Refused("not_yours")
        self.count(person, step)

    def count(self, person: str, step: int) -> None:
        self.held_by = ""
        self.said.add(person)
        self.votes[person] = step
        if not any(self.lacking()):
            if self.recall:
                self.status, self.window_over = "recallable", False
            else:
                self.authorize()

    def reject(self, person: str) -> None:
        self.check_may_speak(person, "reject")
        self.status, self.held_by = "rejected", ""

    def escalate(self, person: str) -> None:
        self.check_may_speak(person, "escalate")
        lacking = self.lacking()
        full = {i for i, n in enumerate(lacking) if n == 0}
        carried = {who for who, step in self.votes.items() if step in full}
        open_now = [step for i, step in enumerate(self.steps) if i not in full]
        asks = [*open_now, (SUPERVISOR, 1)]
        self.check_left(asks, self.carried | carried | self.escalated_by | {person})
        self.carried |= carried
        self.ask(asks, "escalate")
        self.escalated_by.add(person)
        self.escalated, self.held_by = True, ""

    def check_left(self, asks: list[Step], out: set[str]) -> None:
        """Nobody hands up what nobody could then decide."""
        left = [role for who, role in ROLES.items() if who not in out]
        supervisors = sum(n for step, n in asks if step == SUPERVISOR)
        people = left.count(SUPERVISOR) + left.count(REVIEWER)
        if left.count(SUPERVISOR) < supervisors or people < sum(n for _, n in asks):
            raise Refused("policy")

    def ask(self, steps: list[Step], tier: str) -> None:
        """The next version: votes on it are asked afresh."""
        self.version += 1
        self.steps, self.tier = steps, tier
        self.votes, self.said = {}, set()

    def modify(self, person: str, big: bool) -> None:
        role = self.check_may_speak(person, "modify")
        tier = tier_of(self.tool, big)
        asks = STEPS[tier]
        able = all(fills(role, step) for step, _ in self.steps)
        lower = tier == "approve" and self.tier == "escalate"
        if not able and (lower or weaker(asks, self.steps)):
            raise Refused("policy")
        rises = tier == "escalate" and self.tier == "approve"
        self.big, self.held_by = big, ""
        self.ask(list(asks), tier)
        self.carried = set()
        if rises:
            return
        self.said.add(person)
        step = self.place(role)
        if step is not None:
            self.count(person, step)

    def recall_by(self, person: str) -> None:
        role = ROLES[person]
        if role not in {REVIEWER, SUPERVISOR}:
            raise Refused("not_yours")
        if person not in self.votes and role != SUPERVISOR:
            raise Refused("not_yours")
        if self.status != "recallable":
            raise Refused("running" if self.status == "authorized" else "decided")
        if self.window_over:
            raise Refused("running")
        self.status, self.late = "pending", False
        self.ask(self.steps, self.tier)
        self.hold(person)

    def hold(self, person: str) -> None:
        """Who takes it back has it in hand, where they may decide it."""
        with suppress(Refused):
            self.check_person(person)
            self.held_by = person

    # The agent.

    def revise(self, big: bool) -> None:
        if self.stop == "stopped":
            raise Refused("agent_stopped")
        self.check_open()
        self.big = big
        tier = tier_of(self.tool, big)
        steps = list(STEPS[tier])
        if self.escalated and tier == "approve":
            tier, steps = "escalate", [*steps, (SUPERVISOR, 1)]
        self.status, self.late = "pending", False
        self.ask(steps, tier)
        self.carried = set()

    def withdraw(self, code: str = "withdrawn_by_agent") -> None:
        if self.status in OPEN:
            self.status = "withdrawn"
        elif self.execution == "queued":
            self.refuse("revoked", code)
        elif self.status != "withdrawn":  # withdrawing again changes nothing
            raise Refused("decided")

    def redeem(self) -> None:
        if self.take(redeeming=True) is None:
            raise Refused(self.why_not())

    def why_not(self) -> str:
        if self.execution == "refused":
            return REFUSED_AS.get(self.code, "precondition")
        if self.execution == "queued":
            return "conflict"
        if self.execution == "claimed" and self.lease_over and self.held:
            return REFUSED_AS[self.held]
        return "grant_spent"

    # Time and switches.

    def expire(self) -> None:
        if self.status == "pending" and self.late:
            self.status = "expired"

    def close(self) -> None:
        if self.status == "recallable" and self.window_over:
            self.authorize()

    def authorize(self) -> None:
        self.status, self.grant, self.execution = "authorized", "live", "queued"

    def stopped(self) -> None:
        """What was granted until then never begins again."""
        self.taken_back = self.taken_back or bool(self.execution)

    def enforce(self, mode: str) -> None:
        waits = self.status in OPEN or self.execution == "queued"
        if mode == "stopped" and waits:
            self.withdraw("stopped")

    # The worker.

    def take(self, *, redeeming: bool = False) -> bool | None:
        """Whether nothing can have happened yet; None without a claim."""
        ours = redeeming == (self.tool == "deploy")
        if self.execution == "queued":
            return self._take_queued(ours)
        if self.execution == "claimed" and self.lease_over:
            over = self.expired_grant or self.attempts >= MOST_ATTEMPTS
            self.over = ""
            if over or self.tool == "pay_opaque":
                if self.tool == "pay_queryable" and self.attempts < 2 * MOST_ATTEMPTS:
                    closed = self.expired_grant
                    self.over = "window_closed" if closed else "tried_out"
                    return self._lease(untouched=False)
                self.execution, self.code = "unknown", "lease_lapsed"
                return None
            taken = ours and not self.held_back()
            return self._lease(untouched=False) if taken else None
        return None

    def held_back(self) -> bool:
        """A switch lets nobody begin again; what can be looked up still is."""
        if self.tool == "deploy":
            return bool(self.held)
        return self.held == "paused" and self.tool != "pay_queryable"

    def _take_queued(self, ours: bool) -> bool | None:
        if self.expired_grant:
            self.refuse("expired", "window_closed")
            return None
        if self.resting or not ours or self.held == "paused":
            return None
        if self.held:
            self.refuse("revoked", self.held)
            return None
        self.grant, self.over = "spent", ""
        return self._lease(untouched=True)

    def refuse(self, unspent: str, code: str) -> None:
        self.execution, self.code = "refused", code
        self.grant = unspent if self.grant == "live" else self.grant

    def _lease(self, *, untouched: bool) -> bool:
        self.execution, self.lease_over = "claimed", False
        self.fence, self.attempts = self.fence + 1, self.attempts + 1
        return untouched

    def run(self) -> None:
        untouched = self.take()
        if untouched is None:
            return
        if not untouched and self.tool == "pay_queryable":
            if self.effects:
                self.execution = "succeeded"
                return
            if self.over:
                self.execution, self.code = "refused", self.over
                return
            untouched = True
        if not self.held:
            self.happen()
            self.execution = "succeeded"
        elif not untouched:
            self.doubt()
        elif self.held == "paused":
            self.execution, self.resting = "queued", True
            self.attempts -= 1
        else:
            self.refuse("revoked", self.held)

    def happen(self) -> None:
        """The world: a keyed provider does it once whatever it is told."""
        self.effects = 1 if self.tool == "pay" else self.effects + 1

    def doubt(self) -> None:
        """It may have happened: asked again later, unless there is no later."""
        over = self.expired_grant or self.attempts >= MOST_ATTEMPTS
        if over or self.tool in {"pay_opaque", "deploy"}:
            self.execution = "unknown"
        self.lease_over = False  # until then its holder is waited for

    def record(self, fence: int, outcome: str) -> None:
        if self.execution != "claimed" or fence != self.fence:
            raise Refused("stale_fence")
        if outcome == "unknown":
            self.doubt()
        else:
            self.execution = outcome

    def settle(self, person: str, happened: bool) -> None:
        if ROLES[person] != SUPERVISOR:
            raise Refused("not_yours")
        if self.execution != "unknown":
            raise Refused("conflict")
        self.execution = "succeeded" if happened else "failed"

    def retry(self, person: str) -> None:
        if ROLES[person] not in {REVIEWER, SUPERVISOR}:
            raise Refused("not_yours")
        if self.expired_grant:
            raise Refused("grant_expired")
        if self.execution != "failed" or self.held not in {"", "paused"}:
            raise Refused("conflict")
        self.execution, self.resting, self.code = "queued", False, ""


def weaker(asks: list[Step], than: list[Step]) -> bool:
    """Whether fewer people, or fewer supervisors, would be needed."""
    return any(
        sum(n for step, n in asks if fills(step, role))
        < sum(n for step, n in than if fills(step, role))
        for role in (REVIEWER, SUPERVISOR)
    )
