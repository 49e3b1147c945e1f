"""The operations of a run, drawn from a seed: the same seed generates the same.

Here are also the people, the agents and the policy that the operations need: every tier
and every execution class, a recall window, a tool that is decided in batches and one
that agents perform themselves.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.webhooks import endpoints
from reviews.people import preferences
from reviews.people.preferences import NotificationPreferences
from world.cast import (
    DECIDERS,
    activate_policy,
    add_cast,
    create_tokens,
    issue_keys,
    register_agents,
)
from world.receivers import Listener

from .options import Options

AGENTS = tuple(f"agent-{number}" for number in range(8))
HOOKED = AGENTS[:4]  # hear of outcomes by post
CALLS = AGENTS[2]  # the one of these that says by a call of the gate that it has one
FROM_DRIVER = 3  # from this one on, agents also say so when they see the end themselves
MAILS_AN_HOUR = 100  # to each person: letters and effects must not wait for mails


@dataclass(frozen=True)
class Participants:
    """The keys of agents, the tokens of people and the secrets of endpoints."""

    keys: dict[str, str]  # agent -> its key
    tokens: dict[str, str]  # person -> personal token
    secrets: dict[str, str]  # agent -> its endpoint's secret

    def listeners(self, gate: Sequence[str]) -> list[Listener]:
        """The agents' servers; `gate` are the addresses of the web processes."""
        return [
            Listener(
                agent,
                secret,
                self.keys[agent],
                " ".join(gate),
                "call" if agent == CALLS else "answer",
            )
            for agent, secret in self.secrets.items()
        ]


def create_participants(document: dict[str, Any], hooks: str) -> Participants:
    """Make a gate that is ready for operations; `hooks` is the agents' servers' URL."""
    cast = add_cast()
    chosen = NotificationPreferences(per_hour=MAILS_AN_HOUR)
    for name in DECIDERS:
        preferences.save_preferences(person=cast[name], notifications=chosen)
    activate_policy(document, cast)
    agents = register_agents(AGENTS, cast, list(document["tools"]))
    secrets = {}
    for slug in HOOKED:
        _, secrets[slug] = endpoints.register_endpoint(
            agent=agents[slug], url=f"{hooks}/{slug}", by=cast["owen"]
        )
    return Participants(issue_keys(agents, cast), create_tokens(cast), secrets)


# kind -> (tool, how many of a hundred). What becomes of one is in its kind alone, which
# its thread's name carries, so that people know what to say.
OPERATION_KINDS = {
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
class Operation:
    """One request that an agent will make, `at` seconds after the start."""

    number: int
    kind: str
    at: float
    agent: int
    group: str = ""

    @property
    def tool(self) -> str:
        return OPERATION_KINDS[self.kind][0]

    @property
    def key(self) -> str:
        return f"op-{self.number:05d}"

    @property
    def thread(self) -> str:
        return f"c{self.number:05d}-{self.kind}"

    @property
    def args(self) -> dict[str, str]:
        note = {"note": NOTES[self.kind]} if self.kind in NOTES else {}
        return {
            "customer": f"C-{self.number % ALIKE}",
            "amount": f"{10 + self.number % 90}.00",
            "currency": "USD",
            **note,
        }


def read_thread(thread: str) -> tuple[int, str]:
    """The number and the kind of the operation behind a thread."""
    number, _, kind = thread.partition("-")
    return int(number.removeprefix("c")), kind


def generate_operations(options: Options) -> list[Operation]:
    """Draw as many operations as the options say, in the order in which they come."""
    drawn = random.Random(options.seed)  # noqa: S311 - to be drawn again
    operations: list[Operation] = []
    kinds = list(OPERATION_KINDS)  # each once, so that none is missing from a short run
    drawn.shuffle(kinds)
    while len(operations) < options.requests:
        number = len(operations)
        at = number * options.seconds / options.requests
        kind = kinds.pop(0) if kinds else _draw_kind(drawn, at, options)
        agent = drawn.randrange(len(AGENTS))
        more = drawn.randint(*IN_A_BATCH) if kind == "batch" else 1
        group = f"g-{number}" if kind == "batch" else ""
        for place in range(min(more, options.requests - number)):
            operations.append(Operation(number + place, kind, at, agent, group))
    return operations


def _draw_kind(drawn: random.Random, at: float, options: Options) -> str:
    weights = [weight for _, weight in OPERATION_KINDS.values()]
    kind = drawn.choices(list(OPERATION_KINDS), weights)[0]
    # It ends a minute later, and nobody wants to wait for the last one.
    late = at > max(options.seconds - SHORTEST_WAIT_S, options.seconds * 0.3)
    return "keyed" if kind == "expire" and late else kind


RECALL_S = 2
ATTEMPTS = 10  # after which even a keyed effect is a person's question
PAYMENT = {
    "type": "object",
    "properties": {
        "customer": {"type": "string", "maxLength": 40},
        "amount": {"type": "string"},
        "currency": {"enum": ["USD"]},
        "note": {"type": "string", "maxLength": 40},
    },
    "required": ["customer", "amount", "currency"],
}
GRAVE = {"reversible": False, "blast_radius": 4, "monetary": True, "external": True}
SENTENCE = "{verb} {{amount}} {{currency}} to {{customer}}"


def build_policy(service: str) -> dict[str, Any]:
    """The policy as data; `service` is where the services answer."""
    high = {"risk": "high", "profile": GRAVE}
    return {
        "name": "chaos",
        "currency": "USD",
        "zone": "UTC",
        "queues": {"money": "Money", "grave": "Grave"},
        "recall": {"low": 0, "medium": 0, "high": RECALL_S, "critical": 0},
        "steps": {
            "approve": [{"role": "reviewer", "required": 1}],
            "escalate": [{"role": "supervisor", "required": 2}],
        },
        "tools": {
            "note": _tool(service, "note", "keyed", **_light("low", 1)),
            "tag": _tool(service, "tag", "queryable", **_light("medium", 3)),
            "pay": _tool(service, "pay", "keyed", **high),
            "ship": _tool(service, "ship", "queryable", **high),
            "letter": _tool(service, "letter", "opaque", **high),
            "repay": _tool(service, "repay", "keyed", **high, **_batchable()),
            "deploy": _tool(service, "deploy", "keyed", **high)
            | {"executor": {"kind": "agent"}},
            "wipe": _tool(
                service, "wipe", "keyed", risk="critical", profile=GRAVE, queue="grave"
            ),
        },
    }


def _light(risk: str, radius: int) -> dict[str, Any]:
    because = "The service forgets it with the run."
    profile = {"reversible": True, "blast_radius": radius}
    return {"risk": risk, "profile": {**profile, "reversible_because": because}}


def _tool(service: str, name: str, way: str, **more: Any) -> dict[str, Any]:
    url = f"{service}/{name}"
    tool = {
        "title": name.capitalize(),
        "schema": PAYMENT,
        "money": [{"amount": "amount", "currency": "currency"}],
        "queue": "money",
        "effect": SENTENCE.format(verb=name.capitalize()),
        "timeout": "30m",
        "retry": {"attempts": ATTEMPTS, "base_seconds": 1, "most_seconds": 4},
        "execution_class": way,
        "executor": {"kind": "webhook", "url": url},
        **more,
    }
    return tool | ({"look_up": {"url": f"{url}/look-up"}} if way == "queryable" else {})


def _batchable() -> dict[str, Any]:
    return {
        "reversal": {"kind": "partly", "undo": "Ask for it.", "stays": "The fee."},
        "batchable": {
            "items": 50,
            "per_item": {"amount": "200.00", "currency": "USD"},
            "total": {"amount": "5000.00", "currency": "USD"},
            "varying": ["customer", "amount", "note"],
        },
    }
