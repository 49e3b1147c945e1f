"""One retail run: the whole product as it really runs, the store's service beside it,
four agents and a reviewer at work, and a worker that may be killed on the way."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
from django.conf import settings

from agents import keys
from counterseal_client import Gate, Proposal
from hitl.environment import LOOPBACK, ROOT
from hitl.local.process import Child, Program
from journal import clock
from journal.models import LogRecord, OutboxMessage
from reviews.models import Execution
from reviews.people import tokens
from tests import factories
from tests.retail import policy, service
from tests.retail.actors import AGENTS, Agent, Ask, Reviewer, Script, Send, dealt
from tests.retail.books import Books
from tests.retail.store import EFFECTS
from tests.retail.tasks import Call
from tests.stack import START_S, Stack, free_port, wait_until

# The product's own ladder, shorter, so that a killed worker is missed for seconds only;
# and more proposals a minute than four quick agents make.
ENVIRON = {
    "WEBHOOK_NETWORKS": f"{LOOPBACK}/32",
    "HTTP_TIMEOUT": "1",
    "SOFT_TIME_LIMIT": "2",
    "TIME_LIMIT": "3",
    "LEASE_SECONDS": "4",
    "VISIBILITY_TIMEOUT": "8",
    "AGENT_RATE_PER_MINUTE": "100000",
}
# Where a kill falls: once the effect is committed and its answer held back, while the
# gate's call is held before the effect, or wherever it may.
MOMENTS = ("after", "before", "")
SETTLED_S = 30.0  # for what follows the last answer: mails, the sequencer


@dataclass(frozen=True, slots=True)
class Kill:
    """What a dead worker left claimed, and how much of that had happened."""

    claimed: int
    happened: int


@dataclass(frozen=True, slots=True)
class Played:
    """What a run leaves to be looked at."""

    answers: dict[int, Proposal]
    kills: list[Kill]
    seconds: float
    waits: list[float]  # of an agent for each of its calls


@contextmanager
def store_service(folder: Path, data: Path) -> Iterator[tuple[str, Books]]:
    """The store's address, and its books to be read from outside."""
    port, file = free_port(), folder / "store.sqlite"
    secret = settings.COUNTERSEAL.webhook_secret
    at = f"{LOOPBACK}:{port}"
    argv = ["-m", "tests.retail.service", at, str(file), str(data)]
    program = Program(
        name="retail-store",
        argv=[sys.executable, *argv],
        env={**os.environ, service.SECRET: secret},
        log=folder / "store.log",
        cwd=ROOT,
    )
    child = Child(program)
    try:
        url = f"http://{at}"
        wait_until(lambda: _answers(url), START_S, (folder / "store.log").read_text)
        yield url, Books(file, {})
    finally:
        child.kill()


def _answers(url: str) -> bool:
    """An unsigned call is refused by whoever is there."""
    try:
        return httpx2.post(f"{url}/none", trust_env=False).status_code == 401
    except httpx2.TransportError:
        return False


def house(document: dict[str, Any]) -> tuple[dict[str, str], str]:
    """People, a policy in force and four agents: each agent's key, and the token of the
    one who reviews."""
    people = factories.cast()
    factories.policy(people, document)
    found = {}
    for name in AGENTS:
        row = factories.agent(people["owen"], name, tools=list(EFFECTS))
        found[name] = keys.issue_key(agent=row, by=people["owen"])
    return found, tokens.create_token(person=people["rita"], name="retail")


@dataclass
class Run:
    """A stack, the store beside it, and the calls to be made."""

    stack: Stack
    url: str
    books: Books
    data: Path
    calls: Sequence[Call]

    def play(self, rejects: Script, kills: int) -> Played:
        """Everybody works until every call is settled; the worker dies `kills` times,
        spread over the run. Child processes start here, so call it from the main
        thread."""
        with ExitStack() as connections:
            return self._played(*self._cast(rejects, connections), kills)

    def _played(self, agents: list[Agent], reviewer: Reviewer, kills: int) -> Played:
        self.stack.start_worker()
        begun = time.monotonic()
        with ThreadPoolExecutor(len(agents) + 1) as pool:
            working = [pool.submit(agent.work) for agent in agents]
            reviewing = pool.submit(reviewer.work)
            try:
                dead = self._kill(kills, agents, [*working, reviewing])
                _all_done(working, reviewing)
            finally:
                reviewer.stopping.set()
        seconds = time.monotonic() - begun
        wait_until(_quiet, SETTLED_S)
        answers = {n: p for agent in agents for n, p in agent.answers.items()}
        waits = [wait for agent in agents for wait in agent.seconds]
        return Played(answers, dead, seconds, waits)

    def _cast(
        self, rejects: Script, connections: ExitStack
    ) -> tuple[list[Agent], Reviewer]:
        knocking, token = house(policy.document(self.data, self.url))
        work = dealt(self.calls)
        agents = [
            Agent(name, self._asking(key, connections), work[name])
            for name, key in knocking.items()
        ]
        send = self._sending(token, connections)
        return agents, Reviewer(send, self.calls, rejects)

    def _asking(self, key: str, connections: ExitStack) -> Ask:
        http = httpx2.Client(trust_env=False)
        client = Gate(self.stack.base_url, key, http=http)
        connections.enter_context(client)
        return lambda wanted: wanted(client)

    def _sending(self, token: str, connections: ExitStack) -> Send:
        headers = {"Authorization": f"Bearer {token}"}
        root = f"{self.stack.base_url}/api/v1"
        http = httpx2.Client(base_url=root, headers=headers, trust_env=False)
        return connections.enter_context(http).request

    def _kill(
        self, kills: int, agents: Sequence[Agent], others: Sequence[Future[None]]
    ) -> list[Kill]:
        dead = []
        for number in range(kills):
            due = (number + 1) * len(self.calls) // (kills + 1)
            while sum(len(agent.answers) for agent in agents) < due:
                _still_well(others)
                time.sleep(0.01)
            dead.append(self._kill_once(MOMENTS[number % len(MOMENTS)]))
        return dead

    def _kill_once(self, moment: str) -> Kill:
        """SIGKILL to the worker and its pool, and a new worker."""
        if moment:
            httpx2.post(f"{self.url}/hold/{moment}", trust_env=False, timeout=10)
        self.stack.kill_worker()
        claimed = Execution.objects.filter(status="claimed")
        left = list(claimed.values_list("idempotency_key", flat=True))
        counts = self.books.counts()
        happened = sum(key in counts for key in left)
        self.stack.start_worker()
        return Kill(len(left), happened)


def _still_well(others: Sequence[Future[None]]) -> None:
    """Raise what ended a thread before its time."""
    for future in others:
        if future.done():
            future.result()


def _all_done(working: Sequence[Future[None]], reviewing: Future[None]) -> None:
    while not all(future.done() for future in working):
        _still_well([*working, reviewing])
        time.sleep(0.01)
    for future in working:
        future.result()


def _quiet() -> bool:
    """Every promise kept but for mails of a later time, every record in its place."""
    later = clock.now() + timedelta(seconds=SETTLED_S)
    waiting = OutboxMessage.objects.filter(done_at__isnull=True)
    kept = not waiting.exclude(held_until__gt=later).exists()
    return kept and not LogRecord.objects.filter(position=None).exists()
