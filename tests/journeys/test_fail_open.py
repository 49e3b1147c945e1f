"""T24: whatever the gate stands on breaks, nothing happens that nobody allowed, who
asks is told to ask again, and nothing is half written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections
from django.db.models import Model

from agents import keys
from journal.models import LogPeriod, LogRecord, OutboxMessage
from policies.models import Person
from reviews.choices import ExecutionStatus
from reviews.models import (
    ApprovalRequest,
    Decision,
    Execution,
    Grant,
    Proposal,
    Revision,
)
from reviews.people import tokens
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, proposal_body, propose
from tests.journeys import breaking
from tests.security.world import BACKEND
from tests.stack import Stack, make, wait_until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.django_db(transaction=True),
]
TABLES: list[type[Model]] = [
    Proposal,
    Revision,
    ApprovalRequest,
    Decision,
    Grant,
    Execution,
    LogRecord,
]
OF_A_WORKER = ("execution.claimed", "execution.succeeded")
MOST_ROOM = 50  # a page holds fewer rows than so many calls write
Break = Callable[["Broken"], AbstractContextManager[Any]]


def counts() -> dict[str, int]:
    """Of rows that only a call of a person or an agent makes: not what a worker records
    of an effect that was approved before."""
    found = {model.__name__: model._default_manager.count() for model in TABLES}
    works = LogRecord.objects.filter(kind__in=OF_A_WORKER)
    return found | {LogRecord.__name__: found[LogRecord.__name__] - works.count()}


@dataclass
class Broken:
    """A stack that can be broken, and those who use it."""

    gate: Gate
    stack: Stack
    folder: Path
    agent: httpx2.Client
    reviewer: httpx2.Client
    session: str

    def propose(self, key: str) -> httpx2.Response:
        body = proposal_body(customer=key).model_dump(mode="json", exclude_unset=True)
        headers = {"Idempotency-Key": key}
        return self.agent.post("/api/v1/proposals", json=body, headers=headers)

    def approve(self, request: ApprovalRequest) -> httpx2.Response:
        said = {"version": request.version, "action_hash": request.action_hash}
        path = f"/api/v1/requests/{request.pk}/decide"
        return self.reviewer.post(path, json={**said, "verdict": "approve"})

    def why(self) -> str:
        codes = [one.exit_code() for one in self.stack.workers]
        return f"{self.stack.log('worker')}\nended: {codes}"

    def page(self, request: ApprovalRequest) -> httpx2.Response:
        headers = {"Cookie": self.session, "Authorization": ""}
        return self.reviewer.get(f"/requests/{request.pk}/", headers=headers)


@pytest.fixture
def broken(gate: Gate, _stack: Stack, tmp_path: Path) -> Iterator[Broken]:
    stack, session = make(tmp_path / "state"), signed_in(gate.rita)
    _stack.collect()
    (stack.state / "static").symlink_to(_stack.state / "static")
    with breaking.linked(stack) as folder, contextlib.ExitStack() as kept:
        kept.callback(stack.stop)
        stack.extra["MAIL_URL"] = "smtp://127.0.0.1:1"
        stack.start_web()
        stack.start_worker(processes=1)
        key = keys.issue_key(agent=gate.agent, by=gate.owen)
        token = tokens.create_token(person=gate.rita, name="script")
        yield Broken(
            gate,
            stack,
            folder,
            kept.enter_context(_client(stack, Authorization=f"Bearer {key}")),
            kept.enter_context(_client(stack, Authorization=f"Bearer {token}")),
            session,
        )
        for connection in connections.all():
            connection.close()


def _client(stack: Stack, **headers: str) -> httpx2.Client:
    return httpx2.Client(
        base_url=stack.base_url, headers=headers, timeout=30, trust_env=False
    )


def signed_in(person: Person) -> str:
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = BACKEND
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.create()
    return f"{settings.SESSION_COOKIE_NAME}={session.session_key}"


DATABASE_DOWN = "the database is down"
# What breaks so that nothing can be written: everybody is refused.
REFUSING: dict[str, Break] = {
    DATABASE_DOWN: lambda it: breaking.database_down(it.folder),
    "the database's disk is full at the log": lambda it: breaking.disk_full(
        it.folder, f"journal_logrecord_{LogPeriod.objects.latest('number').number}"
    ),
    "the database's disk is full at the outbox": lambda it: breaking.disk_full(
        it.folder, "journal_outboxmessage"
    ),
}


def test_what_breaks_leaves_no_effect_and_no_half_row(
    broken: Broken, record_proof: Callable[[str, str], None]
) -> None:
    full = {
        refuses(broken, name, down, f"C-{number}")
        for number, (name, down) in enumerate(REFUSING.items())
    }
    runs_later(broken, "the broker is down", breaking.broker_down(broken.folder))
    real = note_is_full(broken)
    letters_wait(broken)
    record_proof(
        "T24",
        f"{len(REFUSING) + 3} servers and disks taken from the running stack (database,"
        " broker, the database's disk at two tables"
        f" {'as it would say it: no mount here' if False in full else 'really full'},"
        f" the disk beside it {'a full tmpfs' if real else 'as /dev/full'}, mail): 0"
        " effects that nobody allowed, 0 half-written rows, every refusal a 5xx with a"
        " reference, every retry by its key taken. The signer is not built yet",
    )


def refuses(it: Broken, name: str, down: Break, key: str) -> bool | None:
    """Whether a disk was really full; None where it is about none."""
    waiting = [
        propose(
            it.gate.agent, customer=f"before-{key}-{n}", thread=f"{key}-{n}"
        ).request
        for n in range(1 if name == DATABASE_DOWN else MOST_ROOM)
    ]
    done = worlds.effects()
    real: bool | None
    with down(it) as real:
        number, said = until_refused(lambda n: it.propose(f"{key}-{n}"))
        told = said.json()
        assert told["code"] == "unavailable"
        assert "Reference" in told["detail"]
        which, said = until_refused(lambda n: it.approve(waiting[n]))
        assert said.json()["code"] == "unavailable", name
        request = waiting[which]
        page = it.page(request)
        told = "503 · unavailable" in page.text
        assert told == (page.status_code == 503), name
    request.refresh_from_db()
    assert (request.status, request.decisions.count()) == ("pending", 0), name
    assert happened_since(done) <= keys_of(waiting[:which]), name
    wait_until(lambda: it.propose(f"{key}-{number}").status_code == 201, 20)
    assert it.approve(request).status_code == 200, name
    wait_until(lambda: ended(request), 30, lambda: it.stack.log("worker"))
    return real


def happened_since(done: list[Any]) -> set[str]:
    return {key for _, key, _ in worlds.effects()[len(done) :]}


def keys_of(requests: list[ApprovalRequest]) -> set[str]:
    """Of what was approved for these."""
    theirs = Execution.objects.filter(proposal__request__in=requests)
    return set(theirs.values_list("idempotency_key", flat=True))


def until_refused(ask: Callable[[int], httpx2.Response]) -> tuple[int, httpx2.Response]:
    """The first that is, and its answer; nothing of it is there. The last page of a
    table on a full disk has room for a few more."""
    for number in range(MOST_ROOM):
        before, said = counts(), ask(number)
        if said.status_code == 503:
            assert counts() == before
            return number, said
        assert said.is_success, said.text
    raise AssertionError("nobody was refused")


def ended(request: ApprovalRequest) -> bool:
    done = Execution.objects.filter(status=ExecutionStatus.SUCCEEDED)
    return done.filter(proposal=request.proposal_id).exists()


def runs_later(it: Broken, name: str, down: AbstractContextManager[Any]) -> None:
    """The truth is in the database: nothing is lost, it only waits."""
    before = len(worlds.effects())
    with down:
        said = it.propose(name)
        assert said.status_code == 201, name
        request = ApprovalRequest.objects.get(pk=said.json()["request"]["id"])
        assert it.approve(request).status_code == 200, name
        wait_until(lambda: is_degraded(it), 30, it.why)
    wait_until(lambda: ended(request), 30, it.why)
    assert len(worlds.effects()) == before + 1, name


def is_degraded(it: Broken) -> bool:
    """Whether the web process says that it is ready without the broker."""
    ready = httpx2.get(f"{it.stack.base_url}/readyz", trust_env=False)
    return (ready.status_code, ready.json()["broker"]) == (200, "unreachable")


def note_is_full(it: Broken) -> bool:
    """No effect is begun that could be forgotten; it runs when there is room."""
    request = propose(it.gate.agent, customer="note").request
    before = worlds.effects()
    with breaking.note_full(it.stack.state) as real:
        decide(request, it.gate.rita)
        execution = Execution.objects.get(proposal=request.proposal_id)
        wait_until(lambda: unwritten(execution), 30, lambda: it.stack.log("worker"))
        assert worlds.effects() == before
    wait_until(lambda: ended(request), 60, lambda: it.stack.log("worker"))
    assert len(worlds.effects()) == len(before) + 1
    return real


def unwritten(execution: Execution) -> bool:
    execution.refresh_from_db()
    return execution.code == "unwritten"


def letters_wait(it: Broken) -> None:
    """Nobody answers where mail is to go: what was written stays promised, and nothing
    was decided or run for the lack of it."""
    letters = OutboxMessage.objects.filter(topic="notice.due", done_at=None)
    asked = OutboxMessage.objects.filter(topic="request.opened")
    assert letters.exists() or asked.filter(done_at=None).exists()
    assert not Execution.objects.filter(status=ExecutionStatus.FAILED).exists()
