"""Rows as real operations make them: no factory sets a status."""

from __future__ import annotations

import copy
import functools
import itertools
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import yaml
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission
from django.db import connection, transaction

from agents import intake, proposals
from agents.models import Agent
from agents.schemas.proposals import ProposalIn, RevisionIn
from journal import clock
from policies import versions
from policies.choices import Role
from policies.models import Person, PolicyVersion, Queue, QueueUserPermission, Tool
from policies.people import build_actor
from reviews import deadlines
from reviews.choices import Verdict
from reviews.decisions import decide as decisions
from reviews.decisions.submission import StepUpProof, VerdictSubmission
from reviews.models import ApprovalRequest, Execution, Proposal
from world.cast import DECIDERS, LOGINS, put_in_force

POLICY = Path(__file__).parent / "policy.yaml"
LOOPBACK = ip_network("127.0.0.1/32")
PASSWORD = "correct horse battery"
CAST = {**LOGINS, "otto": Role.AUDITOR}
TOOL_COLUMNS = ("name", "version", "definition", "digest", "risk", "execution_class")
_numbers = itertools.count(1)


def cast() -> dict[str, Person]:
    """The people of demo.json, each with one role. At once: most tests begin so."""
    password = make_password(PASSWORD)
    people = {name: _newcomer(name, password=password) for name in CAST}
    Person.objects.bulk_create(people.values())
    groups = _groups()
    Person.groups.through._default_manager.bulk_create(
        Person.groups.through(person=people[name], group=groups[role])
        for name, role in CAST.items()
    )
    return people


def person(name: str, role: Role, **fields: Any) -> Person:
    """Someone with a role, an address and the tests' password."""
    newcomer = _newcomer(name, password=make_password(PASSWORD), **fields)
    newcomer.save()
    newcomer.groups.add(_groups()[role])
    return newcomer


def admitted(name: str, role: Role, **fields: Any) -> Person:
    """Someone who decides in every queue there is, beside the cast."""
    newcomer = person(name, role, **fields)
    _admit([newcomer])
    return newcomer


def _newcomer(name: str, **fields: Any) -> Person:
    fields = {"email": f"{name}@example.com", **fields}
    return Person(
        username=name,
        first_name=name.title(),
        last_name="Example",
        **fields,
    )


def _groups() -> dict[str, Group]:
    roles = [Group(name=role.value) for role in Role]
    known: Any = {"unique_fields": ["name"], "update_fields": ["name"]}
    groups = Group.objects.bulk_create(roles, update_conflicts=True, **known)
    return {group.name: group for group in groups}


def policy(
    people: dict[str, Person], document: Any = None, **variables: str
) -> PolicyVersion:
    """An active policy, everyone who decides admitted to each of its queues."""
    return put_in_force(
        document or _document(),
        people["adam"],
        people["alma"],
        admit=lambda: _admit([people[name] for name in DECIDERS]),
        variables=variables,
    )


@dataclass(frozen=True)
class _CheckedPolicy:
    """The tests' policy as the product's check stores it. What a test may change is
    pickled, which makes a copy in a quarter of the time of `deepcopy`."""

    document: bytes
    digest: str
    queues: dict[str, str]
    tools: bytes


_checked: list[_CheckedPolicy] = []


def own_policy(people: dict[str, Person]) -> PolicyVersion:
    """The tests' policy, active, in a database without one.

    The first call in a process saves and activates it as an administrator does. Later
    calls, thousands of them, write the same rows without another check.
    """
    if not _checked:
        version = policy(people)
        queues = dict(Queue.objects.values_list("name", "title"))
        tools = list(Tool.objects.order_by("pk").values(*TOOL_COLUMNS, "queue__name"))
        document, rows = pickle.dumps(version.document), pickle.dumps(tools)
        _checked.append(_CheckedPolicy(document, version.digest, queues, rows))
        return version
    with transaction.atomic():
        return _write_checked(_checked[0], people)


def hold_unknown_tools(people: dict[str, Person], queue: str) -> PolicyVersion:
    """The tests' policy, but calls of unknown tools wait in a queue."""
    return policy(people, {**_document(), "unknown_tools": {"hold": queue}})


def _write_checked(known: _CheckedPolicy, people: dict[str, Person]) -> PolicyVersion:
    rows = [Queue(name=name, title=title) for name, title in known.queues.items()]
    queues = {row.name: row for row in Queue.objects.bulk_create(rows)}
    Tool.objects.bulk_create(
        Tool(
            **{name: tool[name] for name in TOOL_COLUMNS},
            queue=queues[tool["queue__name"]],
        )
        for tool in pickle.loads(known.tools)
    )
    _admit([people[name] for name in DECIDERS], list(queues.values()))
    version = PolicyVersion(
        number=1,
        document=pickle.loads(known.document),
        digest=known.digest,
        author=people["adam"],
    )
    now, data = clock.now(), {"digest": known.digest}
    author, second = build_actor(people["adam"]), build_actor(people["alma"])
    versions.machine.create(version, "save", actor=author, now=now, data=data)
    changes = {"activated_by": people["alma"], "activated_at": now}
    return versions.machine.apply(
        version, "activate", actor=second, now=now, changes=changes, data=data
    )


def _admit(people: Sequence[Person], queues: Sequence[Queue] = ()) -> None:
    """To every queue there is."""
    decide = _find_decide_permission()
    admitted = [
        QueueUserPermission(user=person, permission=decide, content_object=queue)
        for person in people
        for queue in queues or Queue.objects.all()
    ]
    QueueUserPermission.objects.bulk_create(admitted, ignore_conflicts=True)


@functools.cache
def _find_decide_permission() -> Permission:
    """It keeps its id when the database is emptied (tests/emptying.py)."""
    return Permission.objects.get(codename="decide", content_type__model="queue")


def document_of_tests() -> dict[str, Any]:
    """The tests' policy as data, to be varied."""
    return copy.deepcopy(_document())


@functools.cache
def _document() -> dict[str, Any]:
    # Read leniently: the product refuses YAML's anchors, which keep this file short.
    document: dict[str, Any] = yaml.safe_load(POLICY.read_text())
    return document


def agent(owner: Person, slug: str = "riley", **fields: Any) -> Agent:
    """A registered agent that may propose every tool of the tests' policy."""
    tools = fields.pop("tools", None) or list(ARGS)
    return Agent.objects.create(
        slug=slug, name=slug.title(), owner=owner, tools=tools, **fields
    )


def propose(agent: Agent, tool: str = "pay", **fields: Any) -> Proposal:
    """One proposal through the agents' own operation."""
    body = proposal_body(tool, **fields)
    key = intake.parse_call_key(
        f"key-{next(_numbers)}", "POST", "/proposals", body.model_dump()
    )
    asked = intake.build_proposal_input(agent, body)
    stored = proposals.propose_action(agent=agent, key=key, asked=asked)
    return Proposal.objects.get(pk=stored.proposal)


def new_thread() -> str:
    """The name of a run of its own: there, the same action is asked again."""
    return f"t-new-{next(_numbers)}"


def proposal_body(tool: str = "pay", **fields: Any) -> ProposalIn:
    """A body of `POST /proposals`; `amount` stands for the arguments of a payment."""
    amount = fields.pop("amount", "40.00")
    args = fields.pop("args", None) or ARGS.get(tool, lambda _: {})(amount)
    if "customer" in fields:
        args["customer"] = fields.pop("customer")
    return ProposalIn(
        **{"thread": "t-1", "tool": tool, "args": args, "rationale": "asked", **fields}
    )


def _payment(amount: str) -> dict[str, Any]:
    return {"customer": "C-1", "amount": amount, "currency": "USD"}


ARGS = {
    "look": lambda _: {"q": "shoes"},
    "decline": lambda _: {"q": "shoes"},
    "tag": lambda _: {"label": "vip"},
    "deploy": lambda _: {"ref": "v1"},
    "write": lambda _: {"to": "a friend", "text": "hello"},
    "pay": _payment,
    "pay_queryable": _payment,
    "repay": _payment,
    "pay_opaque": _payment,
}


def revise(agent: Agent, proposal: Proposal, **args: Any) -> None:
    """A new revision of a payment by its agent."""
    revised(agent, proposal, {**_payment("41.00"), **args})


def revised(
    agent: Agent, proposal: Proposal, args: dict[str, Any], **fields: Any
) -> None:
    """A new revision with exactly these arguments."""
    body = RevisionIn(args=args, **{"rationale": "better", **fields})
    key = intake.parse_call_key(
        f"key-{next(_numbers)}", "POST", "/r", body.model_dump()
    )
    asked = intake.build_revision_input(
        agent, proposal.thread, proposal.tool_name, body
    )
    proposals.revise_proposal(
        agent=agent, key=key, proposal_id=proposal.pk, asked=asked
    )


def reason_for(verdict: str) -> str:
    """A reason that fits the verdict."""
    fits = {"approve": "verified", "modify": "wrong_amount", "escalate": "unclear"}
    return fits.get(verdict, "not_needed")


def said(
    request: ApprovalRequest, person: Person, verdict: str = "approve", **fields: Any
) -> VerdictSubmission:
    """A verdict on what is asked now, with the proof and reason that may be needed."""
    request.refresh_from_db()
    plain = VerdictSubmission(
        **{
            "request_id": request.pk,
            "person": Person.objects.get(pk=person.pk),
            "verdict": Verdict(verdict),
            "version": request.version,
            "action_hash": request.action_hash,
            "reason_code": reason_for(verdict),
            **fields,
        }
    )
    return plain if "step_up" in fields else proved(plain)


def proved(verdict: VerdictSubmission, method: str = "password") -> VerdictSubmission:
    """The same verdict, by somebody who just proved to be themselves for it."""
    proof = StepUpProof(method, clock.now(), verdict.bound.digest)
    return replace(verdict, step_up=proof)


def decide(
    request: ApprovalRequest, person: Person, verdict: str = "approve", **fields: Any
) -> ApprovalRequest:
    """One verdict through the operation."""
    return decisions.decide_request(said(request, person, verdict, **fields))


def overdue(request: ApprovalRequest) -> None:
    """Move the deadline into the past; the clock is never moved."""
    past = clock.now() - timedelta(seconds=1)
    ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=past)


def lapsed(execution: Execution) -> None:
    """Move a lease into the past."""
    past = clock.now() - timedelta(seconds=1)
    Execution.objects.filter(pk=execution.pk).update(lease_until=past)


def window_over(request: ApprovalRequest) -> None:
    """Move the end of a recall window into the past, and let the sweep see it."""
    past = clock.now() - timedelta(seconds=1)
    ApprovalRequest.objects.filter(pk=request.pk).update(recall_until=past)
    deadlines.close_recall_windows()


def count_of(text: str) -> int:
    """How many rows of any table hold a text, in any column."""
    count = 0
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(
                f'SELECT count(*) FROM "{table}" AS r WHERE r::text LIKE %s',
                [f"%{text}%"],
            )
            count += cursor.fetchone()[0]
    return count
