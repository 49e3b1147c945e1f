"""Proposals with hostile text wherever an agent may put one, through the real API."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

from django.test import Client

from agents import keys
from agents.models import Agent
from reviews import redaction
from reviews.models import ApprovalRequest, Decision, Execution
from reviews.redaction import redactor
from tests import factories
from tests.agents.conftest import Caller
from tests.browser.hostile_tools import TOOLS as TOOLS
from tests.browser.hostile_tools import registered as registered
from tests.browser.hostile_views import tools_of_views
from tests.conftest import Gate
from tests.factories import decide
from tests.pages import token
from tests.security.world import BACKEND

T = TypeVar("T")
_CHIPS = re.compile(r"\[[a-z -]+ · redacted · #[0-9a-f]{4}\]")
SHORT = 120
# In every place that takes a text, to find where it must never stand.
MARK = "zqxjkv"


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

    def forget(self) -> None:
        """Let every action be asked again in its run, as if it were another one."""
        ApprovalRequest.objects.update(repeat_key=uuid4())

    def tell(self, body: dict[str, Any], **said: Any) -> None:
        """A proposal that runs and is announced, and what its agent then says; or that
        is asked about first, because nobody can tell what it does."""
        answer = self.propose(body)
        assert answer.status_code == 201, answer.content
        if asked := answer.json()["request"]:
            self.approved(ApprovalRequest.objects.get(pk=asked["id"]), **said)
        else:
            self.report(answer.json()["grant"]["token"], **said)

    def revise(self, request: ApprovalRequest, body: dict[str, Any]) -> None:
        """Replaced by its agent with what a new proposal would say."""
        own = ("thread", "tool", "on_behalf_of", "source", "group", "parent")
        kept = {name: part for name, part in body.items() if name not in own}
        path = f"/proposals/{request.proposal_id}/revisions"
        key = {"Idempotency-Key": f"hostile-{next(self.numbers)}"}
        assert self.caller.post(path, kept, **key).status_code in {200, 201}

    def approved(self, request: ApprovalRequest, **said: Any) -> None:
        """Approved, begun by the agent, and what the agent then says of it."""
        decide(request, self.gate.sue)
        self.done(request.proposal_id, **said)

    def done(self, proposal_id: str, **said: Any) -> None:
        """The same once it is approved."""
        proposal = self.caller.get(f"/proposals/{proposal_id}").json()
        self.report(proposal["grant"]["token"], **said)

    def report(self, token: str, **said: Any) -> None:
        """`status`, and its `result`, or its `code` and `detail`."""
        taken = self.caller.post("/grants/redeem", {"token": token}).json()
        said |= {"fence": taken["fence"], "action_hash": taken["action_hash"]}
        path = f"/executions/{taken['execution']}/outcome"
        assert self.caller.post(path, said).status_code == 200
        assert Execution.objects.get(pk=taken["execution"]).status == said["status"]

    def rejected(self, request: ApprovalRequest) -> str:
        """Rejected on its page, as a browser would; where that page is kept."""
        client = Client()
        client.force_login(self.gate.sue, BACKEND)
        sent = {
            "verdict": "reject",
            "reason_code": "unsafe",
            "seen": token(request, "sue"),
            "version": request.version,
            "action_hash": request.action_hash,
        }
        answer = client.post(f"/requests/{request.pk}/decide/", sent)
        assert answer.status_code == 303, answer.content
        decision = Decision.objects.get(request=request)
        return f"/requests/{request.pk}/as-seen/{decision.pk}/"


def stage(gate: Gate) -> Stage:
    """The tests' policy with the tools above in force."""
    document = factories.document_of_tests()
    tools = registered("odd") | tools_of_views("odd")
    document["tools"] |= tools
    # Many proposals of one run are rejected here.
    factories.policy(gate.people, document | {"rejections_in_a_row": 0})
    Agent.objects.update(tools=[*gate.agent.tools, *tools])
    gate.agent.refresh_from_db()
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    return Stage(gate, Caller(key, itertools.count()), itertools.count())


def everywhere(strings: Sequence[str], thread: str) -> dict[str, Any]:
    """One proposal with all of these strings in every place that takes a text."""
    strings = [*strings, MARK]
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
            "state": dict.fromkeys(short, "v")
            | {
                "list": short,
                "goal": joined,
                "plan": [*short, {"step": joined, "state": short[0]}],
                "budget": dict.fromkeys(short, short[-1]),
            },
            "resume_at": name(short[0]),
        },
        "on_behalf_of": {"kind": "customer", "id": short[-1], "chain": short[:32]},
        "source": name(short[0][:60]),
        "group": name(short[0]),
        "parent": name(short[0][:40]),
    }


def name(text: str) -> str:
    """The text, where a name is asked for and one with an address is refused."""
    return "plain" if redaction.list_kinds(text) else text


def kept(text: str, thread: str = "t-1") -> str:
    """What redaction leaves of a text: addresses and such are chips on every page."""
    return _CHIPS.sub(" ", redactor.load_redactor("riley", thread).text(text))


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
