"""Proposals with hostile text wherever an agent may put one, through the real API."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agents import keys
from agents.models import Agent
from reviews.models import ApprovalRequest, Execution
from tests import factories
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import decide

T = TypeVar("T")
TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
PROFILE = {"reversible": True, "blast_radius": 3}
TOOLS: dict[str, dict[str, Any]] = {
    # Every kind of argument at once.
    "t_every": {
        "schema": {
            "type": "object",
            "required": ["name", "to", "files", "argv", "text", "open"],
            "properties": {
                "name": TEXT,
                "to": TEXTS,
                "files": TEXTS,
                "argv": TEXTS,
                "text": TEXT,
                "open": {"type": "object", "additionalProperties": True},
            },
        },
        "effect": "Do {name} for {to} with {files}",
        "floor": "approve",
    },
    # One string in a row of every list, and in the chips of its sentence.
    "t_row": {
        "schema": {
            "type": "object",
            "required": ["name", "to"],
            "properties": {"name": TEXT, "to": TEXT},
        },
        "effect": "Send {name} to {to}",
        "floor": "approve",
        "batchable": {"items": 50, "varying": ["name", "to"]},
        "reversal": {"kind": "reversible", "undo": "Ask for it back."},
    },
    "t_told": {
        "schema": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": TEXT},
        },
        "effect": "Say {name}",
    },
    "t_shell": {
        "schema": {
            "type": "object",
            "required": ["command"],
            "properties": {"command": TEXT},
        },
        "effect": "Run {command}",
        "presenter": "shell",
        "floor": "approve",
    },
    "t_pay": {
        "schema": {
            "type": "object",
            "required": ["payee", "amount", "currency"],
            "properties": {
                "payee": TEXT,
                "amount": TEXT,
                "currency": {"enum": ["USD", "EUR", "JPY", "KWD"]},
            },
        },
        "money": [{"amount": "amount", "currency": "currency"}],
        "effect": "Pay {amount} {currency} to {payee}",
        "presenter": "money",
        "floor": "approve",
    },
    "t_mail": {
        "schema": {
            "type": "object",
            "required": ["to", "subject", "body"],
            "properties": {
                "to": TEXTS,
                "cc": TEXTS,
                "bcc": TEXTS,
                "subject": TEXT,
                "body": TEXT,
            },
        },
        "effect": "Send the mail {subject} to {to}",
        "presenter": "email",
        "floor": "approve",
    },
    "t_note": {
        "schema": {
            "type": "object",
            "required": ["note", "meta"],
            "properties": {
                "note": TEXT,
                "meta": {"type": "object", "additionalProperties": True},
            },
        },
        "effect": "Note {note}",
        "floor": "approve",
    },
    "t_file": {
        "schema": {
            "type": "object",
            "required": ["name", "to"],
            "properties": {"name": TEXT, "to": TEXT},
        },
        "effect": "Send the file {name} to {to}",
        "floor": "approve",
    },
}
SHORT = 120


@dataclass
class Stage:
    """A gate with those tools, and an agent that may propose all of them."""

    gate: Gate
    caller: Caller
    numbers: Iterator[int]

    def propose(self, body: dict[str, Any]) -> Any:
        key = {"Idempotency-Key": f"hostile-{next(self.numbers)}"}
        return self.caller.post("/proposals", {"thread": "t-1", **body}, **key)

    def ask(self, body: dict[str, Any]) -> ApprovalRequest:
        """A proposal that waits for people."""
        answer = self.propose(body)
        assert answer.status_code == 201, answer.content
        found: dict[str, Any] = answer.json()
        assert found["status"] == "pending", found
        return ApprovalRequest.objects.get(pk=found["request"]["id"])

    def answered(self, request: ApprovalRequest, result: dict[str, Any]) -> None:
        """Approved, done by the agent, and reported with this result."""
        decide(request, self.gate.sue)
        proposal = self.caller.get(f"/proposals/{request.proposal_id}").json()
        token = {"token": proposal["grant"]["token"]}
        taken = self.caller.post("/grants/redeem", token).json()
        said = {"fence": taken["fence"], "action_hash": taken["action_hash"]}
        said |= {"status": "succeeded", "result": result}
        path = f"/executions/{taken['execution']}/outcome"
        assert self.caller.post(path, said).status_code == 200
        assert Execution.objects.get(pk=taken["execution"]).status == "succeeded"


def stage(gate: Gate) -> Stage:
    """The tests' policy with the tools above in force."""
    document = factories.document_of_tests()
    for name, fields in TOOLS.items():
        document["tools"][name] = {
            "title": f"The tool {name}",
            "queue": "odd",
            "risk": "medium",
            "profile": PROFILE,
            "execution_class": "keyed",
            "executor": {"kind": "agent"},
            **fields,
        }
    factories.policy(gate.people, document)
    Agent.objects.update(tools=[*gate.agent.tools, *TOOLS])
    gate.agent.refresh_from_db()
    key = keys.issue(agent=gate.agent, by=gate.owen)
    return Stage(gate, Caller(key, itertools.count()), itertools.count())


def everywhere(strings: Sequence[str], thread: str) -> dict[str, Any]:
    """One proposal with all of these strings in every place that takes a text."""
    joined = "\n".join(strings)
    short = [text[:SHORT] for text in strings]
    items = itertools.zip_longest(short[::3], short[1::3], short[2::3], fillvalue="")
    return {
        "thread": thread,
        "tool": "t_every",
        "args": {
            "name": strings[0],
            "to": list(strings),
            "files": [f"{text}.pdf" for text in short],
            "argv": list(strings),
            "text": joined,
            "open": dict.fromkeys(short, "v") | {"list": short, "in": {"deep": short}},
        },
        "rationale": joined,
        "expected_outcome": joined,
        "reversal": joined,
        "alternatives": [{"action": joined, "why_not": joined}],
        "evidence": [
            {
                "kind": kind,
                "source": source,
                "text": joined if n < 2 else kind,
                "at": at,
            }
            for n, (kind, source, at) in enumerate(items)
        ][:12],
        "checkpoint": {
            "summary": joined,
            "state": dict.fromkeys(short, "v") | {"list": short},
            "resume_at": short[0],
        },
        "on_behalf_of": {"kind": "customer", "id": short[-1], "chain": short[:32]},
        "source": short[0][:60],
        "group": short[0],
        "parent": short[0][:40],
    }


def batched(
    strings: Iterable[str], *, most: int = 24, size: int = 6000
) -> Iterator[list[str]]:
    """Lists of strings that one proposal can hold in every place."""
    batch: list[str] = []
    for text in strings:
        if batch and (len(batch) == most or sum(map(len, batch)) + len(text) > size):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def sampled(strings: Sequence[T], n: int) -> list[T]:
    """`n` of them, from the whole width of the list."""
    if n >= len(strings):
        return list(strings)
    return [strings[i * len(strings) // n] for i in range(n)]
