"""T16: whatever changes between what a person saw and what they send, or between their
approval and the effect, nothing happens that nobody approved as it is now."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import Client
from guardian.shortcuts import remove_perm

from agents import proposals
from journal import canonical
from journal.errors import DomainError
from policies.models import Person, Queue
from reviews.choices import Scope
from reviews.executions import redeem, run
from reviews.governance import readings
from reviews.grants import tokens
from reviews.models import ApprovalRequest, Execution, Grant, Revision
from reviews.stops import stops
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose

pytestmark = [pytest.mark.django_db, pytest.mark.proof]

MOVED = {"kind": "callable", "path": "tests.worlds.plain"}
FIELD = re.compile(
    r'<input type="hidden" (?:id="\w+" )?name="(\w+)"[^>]*value="([^"]*)"'
)


@dataclass(frozen=True)
class Case:
    """One action on its way: who looks at it last, and who else may act on it."""

    gate: Gate
    request: ApprovalRequest
    last: str

    @property
    def proposal(self) -> Any:
        return self.request.proposal

    @property
    def tool(self) -> str:
        return str(self.request.proposal.tool_name)


# What is asked for.
def payment(gate: Gate) -> Case:
    return Case(gate, propose(gate.agent).request, "rita")


def large_payment(gate: Gate) -> Case:
    """Somebody has agreed already, and looked at it as it was then."""
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    return Case(gate, request, "sam")


def by_agent(gate: Gate) -> Case:
    """The agent performs it, with a grant to redeem."""
    document = factories.document_of_tests()
    document["tools"]["deploy"] |= {
        "reader": {"kind": "callable", "path": "tests.worlds.read"},
        "preconditions": ["row_version"],
    }
    factories.policy(gate.people, document)
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    return Case(gate, request, "sam")


SUBJECTS = [payment, large_payment, by_agent]
Change = Callable[[Case], object]


# What changes: the policy and its tools.
def document(case: Case, change: Callable[[dict[str, Any]], object]) -> None:
    found = factories.document_of_tests()
    if case.tool == "deploy":
        found["tools"]["deploy"] |= {
            "reader": {"kind": "callable", "path": "tests.worlds.read"},
            "preconditions": ["row_version"],
        }
    change(found)
    factories.policy(case.gate.people, found)


def tool(**parts: Any) -> Change:
    return lambda case: document(
        case, lambda found: found["tools"][case.tool].update(parts)
    )


def rule(**then: Any) -> Change:
    def change(case: Case) -> None:
        more = {"id": "more", "text": "More.", "tools": [case.tool], "when": "true"}
        document(case, lambda found: found["rules"].append({**more, "then": then}))

    return change


def narrower(case: Case) -> None:
    def change(found: dict[str, Any]) -> None:
        schema = found["tools"][case.tool]["schema"]
        name = "customer" if "customer" in schema["properties"] else "ref"
        schema["properties"][name] = {"type": "string", "maxLength": 1}

    document(case, change)


def gone(case: Case) -> None:
    def change(found: dict[str, Any]) -> None:
        del found["tools"][case.tool]
        found["measures"].clear()
        found["rules"] = []

    document(case, change)


# The target, the bytes and the rows.
def target(case: Case) -> None:
    worlds.WORLD["preconditions"] = {"row_version": 2}


def target_seen(case: Case) -> None:
    """And somebody's page has found it since."""
    worlds.WORLD["before"] = {"amount": "1.00"}
    target(case)
    readings.reread_state(case.request.sealed.revision)


def bytes_(case: Case) -> None:
    """As somebody would who writes past the triggers."""
    revision = case.proposal.current
    other = bytes(revision.canonical).replace(b'"t-1"', b'"t-2"')
    worlds.rewrite(Revision, revision.pk, canonical=other)


def bytes_and_hash(case: Case) -> None:
    revision = case.proposal.current
    other = bytes(revision.canonical).replace(b'"t-1"', b'"t-2"')
    digest = canonical.digest(other)
    worlds.rewrite(Revision, revision.pk, canonical=other, action_hash=digest)


def another_grant(case: Case) -> None:
    """Its grant is made to name another action."""
    for grant in Grant.objects.filter(proposal=case.proposal):
        worlds.rewrite(Grant, grant.pk, action_hash="sha256:" + "0" * 64)


# People and switches.
def person(**fields: Any) -> Change:
    return lambda case: Person.objects.filter(username=case.last).update(**fields)


def role(name: str) -> Change:
    def change(case: Case) -> None:
        group = Group.objects.get_or_create(name=name)[0]
        case.gate.people[case.last].groups.set([group])

    return change


def dismissed(case: Case) -> None:
    for queue in Queue.objects.all():
        remove_perm("policies.decide", case.gate.people[case.last], queue)


def off(scope: Scope) -> Change:
    def change(case: Case) -> None:
        keys = {
            Scope.AGENT: case.proposal.agent,
            Scope.TOOL: case.tool,
            Scope.THREAD: f"{case.proposal.agent}/{case.proposal.thread}",
            Scope.REVIEWER: case.gate.people[case.last].public_id,
            Scope.EVERYTHING: "",
        }
        by = case.gate.sue if scope is Scope.THREAD else case.gate.adam
        stops.create_stop(scope=scope, key=keys[scope], person=by, reason="no")

    return change


def other_people(case: Case) -> None:
    """A queue that whoever looks at it is not let into."""
    rule(queue="mail")(case)
    mail = Queue.objects.get(name="mail")
    remove_perm("policies.decide", case.gate.people[case.last], mail)


# The request itself.
def revised(case: Case) -> None:
    args = {**case.proposal.current.args}
    args["customer" if "customer" in args else "ref"] = "C-9"
    factories.revised(case.gate.agent, case.proposal, args)


def escalated(case: Case) -> None:
    decide(case.request, case.gate.tom, "escalate")


def rejected(case: Case) -> None:
    by = case.gate.tom if case.last == "rita" else case.gate.sam
    decide(case.request, by, "reject")


def withdrawn(case: Case) -> None:
    proposals.withdraw_proposal(agent=case.gate.agent, proposal_id=case.proposal.pk)


def superseded(case: Case) -> None:
    propose(case.gate.agent, "look", supersedes=case.proposal.pk)


def overdue(case: Case) -> None:
    factories.overdue(case.request)


# What holds for every subject.
ANY: dict[str, Change] = {
    "policy: more people": rule(step={"role": "reviewer", "required": 2}),
    "policy: other people": other_people,
    "policy: forbidden": rule(block=True),
    "tool: gone": gone,
    "tool: acts elsewhere": tool(executor=MOVED),
    "tool: for another service": tool(audience="https://elsewhere.example"),
    "tool: takes other arguments": narrower,
    "target: changed": target,
    "args: other bytes": bytes_,
    "args: other bytes and hash": bytes_and_hash,
    "approver: left": person(is_active=False),
    "approver: of another role": role("auditor"),
    "approver: out of the queue": dismissed,
    "approver: stopped": off(Scope.REVIEWER),
    "agent: stopped": off(Scope.AGENT),
    "tool: stopped": off(Scope.TOOL),
    "run: stopped": off(Scope.THREAD),
    "everything: stopped": off(Scope.EVERYTHING),
    "request: withdrawn": withdrawn,
}
# What holds for some: a payment that one reviewer decides, and money.
ONE: dict[str, Change] = {
    "policy: more authority": rule(tier="escalate"),
    "policy: a higher floor": tool(floor="escalate"),
    "policy: a step-up": rule(step_up=True),
}
MONEY: dict[str, Change] = {
    "approver: may decide less": person(ceiling_minor=1, ceiling_currency="USD"),
    "approver: another currency": person(
        ceiling_minor=99_999_999, ceiling_currency="EUR"
    ),
}
BEFORE: dict[str, Change] = {
    "request: revised by its agent": revised,
    "request: superseded": superseded,
    "request: overdue": overdue,
    "target: changed, and seen": target_seen,
}
BEFORE_ONE: dict[str, Change] = {
    "request: escalated by a colleague": escalated,
    "request: rejected by a colleague": rejected,
}
AFTER: dict[str, Change] = {"grant: of another action": another_grant}


def cases(*tables: dict[str, Change], one: dict[str, Change]) -> list[Any]:
    """Each change with each subject it is for."""
    found = [(name, of) for table in tables for name in table for of in SUBJECTS]
    found += [(name, of) for name in MONEY for of in (payment, large_payment)]
    return found + [(name, payment) for name in one]


CHANGES = {**ANY, **ONE, **MONEY, **BEFORE, **BEFORE_ONE, **AFTER}
TO_VERDICT = cases(ANY, BEFORE, one={**ONE, **BEFORE_ONE})
TO_EFFECT = cases(ANY, AFTER, one=ONE)


@contextmanager
def undone() -> Iterator[None]:
    """Whatever happens in here did not happen afterwards."""
    with transaction.atomic():
        # As a test's own transaction: what the product opens may lie in it.
        connection.atomic_blocks[-1]._from_testcase = True  # type: ignore[attr-defined]
        worlds.WORLD.clear()
        yield
        transaction.set_rollback(True)


def render(case: Case) -> tuple[Client, dict[str, str]]:
    """The page of the one who looks at it, and the fields it would send."""
    client = Client()
    backend = "django.contrib.auth.backends.ModelBackend"
    client.force_login(Person.objects.get(username=case.last), backend)
    path = f"/requests/{case.request.pk}/decide/?arm=approve"
    page = client.get(path).content.decode()
    found = FIELD.findall(page)
    fields = {name: unescape(value) for name, value in found}
    assert {"version", "action_hash", "seen", "verdict"} <= fields.keys()
    asked = 'name="password"' in page
    return client, {**fields, **({"password": factories.PASSWORD} if asked else {})}


def send(case: Case, client: Client, fields: dict[str, str]) -> str:
    """What the answer says: a status, or `taken` where the verdict was."""
    answer = client.post(f"/requests/{case.request.pk}/decide/", fields)
    if answer.status_code not in {302, 303}:
        return str(answer.status_code)
    return "signed out" if "/sign-in/" in answer["Location"] else "taken"


def perform(case: Case, token: str = "") -> str:
    """Let the effect happen, if it can, and say what stood against it."""
    execution = Execution.objects.filter(proposal=case.proposal).first()
    if execution is None:
        return "asked on"
    if execution.by_agent:
        try:
            redeem.redeem_grant(
                token=token or tokens.load_token(execution.grant_id), agent="riley"
            )
        except DomainError as error:
            return str(error.status)
        return "DONE"
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    return "DONE" if worlds.effects() else f"{execution.status}".upper()


def between_page_and_verdict(name: str, case: Case) -> str:
    client, fields = render(case)
    CHANGES[name](case)
    said = send(case, client, fields)
    then = perform(case)
    return then if said == "taken" or then == "DONE" else said


def between_approval_and_effect(name: str, case: Case) -> str:
    said = send(case, *render(case))
    assert said == "taken"
    execution = Execution.objects.get(proposal=case.proposal)
    token = tokens.load_token(execution.grant_id)
    CHANGES[name](case)
    return perform(case, token)


MOMENTS = {
    "the page and the verdict": (TO_VERDICT, between_page_and_verdict),
    "the approval and the effect": (TO_EFFECT, between_approval_and_effect),
}
STOPPED = {"403", "404", "409", "410", "422", "signed out", "asked on", "REFUSED"}


@pytest.mark.parametrize("moment", MOMENTS)
def test_whatever_changes_in_between_nothing_unseen_happens(
    gate: Gate,
    moment: str,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    table, attempt = MOMENTS[moment]
    every = proof_n(small=4, full=1)  # of three subjects of a change one, in turn
    seen: Counter[str] = Counter()
    for name, subject in table[::every]:
        with undone():
            seen[found := attempt(name, subject(gate))] += 1
            assert found in STOPPED, (name, subject.__name__, found)
            assert worlds.effects() == [], (name, subject.__name__)
    said = ", ".join(f"{count} {word}" for word, count in sorted(seen.items()))
    record_proof(
        "T16",
        f"{seen.total()} changes between {moment}: {said}; 0 happened "
        f"(0 of {seen.total()}: at most {300 / seen.total():.1f}%)",
    )


@pytest.mark.parametrize("subject", SUBJECTS)
def test_without_a_change_it_happens(
    gate: Gate, subject: Callable[[Gate], Case]
) -> None:
    """Or the other test would prove nothing."""
    case = subject(gate)
    assert send(case, *render(case)) == "taken"
    assert perform(case) == "DONE"
