"""What is asked of the gate, drawn from a seed: the same seed asks the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from .options import Options

# kind -> (tool, how many of a hundred). What becomes of one is in its kind alone, which
# its thread's name carries, so that people know what to say.
KINDS = {
    "auto": ("note", 12),  # asks nobody
    "notify": ("tag", 8),  # asks nobody, people are told
    "keyed": ("pay", 16),
    "queryable": ("ship", 14),
    "opaque": ("letter", 11),
    "reject": ("pay", 6),
    "edit": ("ship", 6),  # approved with another amount
    "expire": ("pay", 2),  # nobody answers
    "withdraw": ("ship", 3),  # the agent takes it back
    "recall": ("pay", 4),  # approved, taken back, asked again
    "stop": ("letter", 2),  # somebody stops the run
    "own": ("deploy", 6),  # the agent redeems the grant
    "batch": ("repay", 2),  # several that are decided together
    "decline": ("pay", 3),  # the service says no
    "again": ("pay", 2),  # the service says no, a person tries again
    "escalate": ("wipe", 2),  # two supervisors, each with a fresh password
}
NOTES = {"decline": "decline", "again": "decline once"}
IN_A_BATCH = (3, 6)
SHORTEST_WAIT_S = 60  # that the gate lets an agent ask for
ALIKE = 40  # customers


@dataclass(frozen=True, slots=True)
class Wish:
    """One request that an agent will make, `at` seconds after the start."""

    number: int
    kind: str
    at: float
    agent: int
    group: str = ""

    @property
    def tool(self) -> str:
        return KINDS[self.kind][0]

    @property
    def key(self) -> str:
        return f"wish-{self.number:05d}"

    @property
    def thread(self) -> str:
        return f"c{self.number:05d}-{self.kind}"

    @property
    def args(self) -> dict[str, str]:
        made = {
            "customer": f"C-{self.number % ALIKE}",
            "amount": f"{10 + self.number % 90}.00",
            "currency": "USD",
        }
        note = NOTES.get(self.kind)
        return made | ({"note": note} if note else {})


def read_thread(thread: str) -> tuple[int, str]:
    """The number and the kind of the wish behind a thread."""
    number, _, kind = thread.partition("-")
    return int(number.removeprefix("c")), kind


def wishes(options: Options, agents: int) -> list[Wish]:
    """As many as were asked for, in the order in which they come."""
    drawn = random.Random(options.seed)  # noqa: S311 - to be drawn again
    made: list[Wish] = []
    every = iter(_all_kinds(drawn))
    while len(made) < options.requests:
        number = len(made)
        at = number * options.seconds / options.requests
        kind = next(every, "") or _kind(drawn, at, options)
        agent = drawn.randrange(agents)
        more = drawn.randint(*IN_A_BATCH) if kind == "batch" else 1
        group = f"g-{number}" if kind == "batch" else ""
        for place in range(min(more, options.requests - number)):
            made.append(Wish(number + place, kind, at, agent, group))
    return made


def _all_kinds(drawn: random.Random) -> Iterator[str]:
    """Each once, so that none is missing from a short run."""
    kinds = list(KINDS)
    drawn.shuffle(kinds)
    yield from kinds


def _kind(drawn: random.Random, at: float, options: Options) -> str:
    weights = [weight for _, weight in KINDS.values()]
    kind = drawn.choices(list(KINDS), weights)[0]
    # It ends a minute later, and nobody wants to wait for the last one.
    late = at > max(options.seconds - SHORTEST_WAIT_S, options.seconds * 0.3)
    return "keyed" if kind == "expire" and late else kind
