"""One retail run: the whole product as it really runs, the store's service beside it,
four agents and a reviewer at work, and a worker that may be killed on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
from django.conf import settings

from counterseal_client import Gate, Proposal
from hitl.environment import LOOPBACK
from hitl.local.process import Child
from journal import clock
from journal.models import LogRecord, OutboxMessage
from reviews.models import Execution
from tests.retail import policy
from tests.retail.books import Books
from tests.retail.store import EFFECTS
from tests.retail.tasks import Call
from tests.stack import Stack
from world import cast
from world.agents import Agent
from world.people import Reviewer
from world.processes import (
    START_S,
    build_service_program,
    free_port,
    wait_until,
)

AGENTS = ("ann", "ben", "cleo", "dan")
Script = Callable[[Call], bool]  # whether a call is to be rejected

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


def collect(agents: Sequence[Agent], kills: list[Kill], seconds: float) -> Played:
    answers = {n: answer for agent in agents for n, answer in agent.answers.items()}
    waits = [wait for agent in agents for wait in agent.seconds]
    return Played(answers, kills, seconds, waits)


def deal(calls: Iterable[Call]) -> dict[str, list[Call]]:
    """The calls of each agent in file order: users go round the agents as they appear.

    A call touches only its own user and that user's orders (test_store.py looks), so
    how agents overtake each other does not matter to the store's final state.
    """
    agent_of: dict[str, str] = {}
    work: dict[str, list[Call]] = {name: [] for name in AGENTS}
    for call in calls:
        next_agent = AGENTS[len(agent_of) % len(AGENTS)]
        work[agent_of.setdefault(call.user, next_agent)].append(call)
    return work


@contextmanager
def store_service(folder: Path, data: Path) -> Iterator[tuple[str, Books]]:
    """The store's address, and its books to be read from outside."""
    port, file = free_port(), folder / "store.sqlite"
    secret = settings.COUNTERSEAL.webhook_secret
    at = f"{LOOPBACK}:{port}"
    argv = ["tests.retail.service", at, str(file), str(data)]
    child = Child(build_service_program(argv, secret, folder / "store.log"))
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


def prepare_gate(document: dict[str, Any]) -> tuple[dict[str, str], str]:
    """People, a policy in force and four agents: each agent's key, and the token of the
    one who reviews."""
    people = cast.add_cast()
    cast.activate_policy(document, people)
    agents = cast.register_agents(AGENTS, people, list(EFFECTS))
    tokens = cast.create_tokens(people, ["rita"])
    return cast.issue_keys(agents, people), tokens["rita"]


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
        keys, token = prepare_gate(policy.document(self.data, self.url))
        with ExitStack() as connections:
            agents = [self._agent(name, keys[name], connections) for name in AGENTS]
            reviewer = self._reviewer(token, rejects, connections)
            return self._play(agents, reviewer, kills)

    def _play(self, agents: list[Agent], reviewer: Reviewer, kills: int) -> Played:
        self.stack.start_worker()
        began = time.monotonic()
        with ThreadPoolExecutor(len(agents) + 1) as pool:
            working = [pool.submit(agent.work) for agent in agents]
            reviewing = pool.submit(reviewer.work)
            try:
                dead = self._kill(kills, agents, [*working, reviewing])
                while not all(future.done() for future in working):
                    _check_well([*working, reviewing])
                    time.sleep(0.01)
                _check_well(working)
            finally:
                reviewer.stopping.set()
        seconds = time.monotonic() - began
        wait_until(_is_quiet, SETTLED_S)
        return collect(agents, dead, seconds)

    def _agent(self, name: str, key: str, connections: ExitStack) -> Agent:
        http = httpx2.Client(trust_env=False)
        gate = connections.enter_context(Gate(self.stack.base_url, key, http=http))
        return Agent(name, lambda call: call(gate), deal(self.calls)[name])

    def _reviewer(
        self, token: str, rejects: Script, connections: ExitStack
    ) -> Reviewer:
        headers = {"Authorization": f"Bearer {token}"}
        root = f"{self.stack.base_url}/api/v1"
        http = httpx2.Client(base_url=root, headers=headers, trust_env=False)
        return Reviewer(connections.enter_context(http).request, self.calls, rejects)

    def _kill(
        self, kills: int, agents: Sequence[Agent], others: Sequence[Future[None]]
    ) -> list[Kill]:
        dead = []
        for number in range(kills):
            due = (number + 1) * len(self.calls) // (kills + 1)
            while sum(len(agent.answers) for agent in agents) < due:
                _check_well(others)
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


def _check_well(others: Sequence[Future[None]]) -> None:
    """Raise what ended a thread before its time."""
    for future in others:
        if future.done():
            future.result()


def _is_quiet() -> bool:
    """Every promise kept but for mails of a later time, every record in its place."""
    later = clock.now() + timedelta(seconds=SETTLED_S)
    waiting = OutboxMessage.objects.filter(done_at__isnull=True)
    promised = waiting.exclude(held_until__gt=later).exists()
    return not promised and not LogRecord.objects.filter(position=None).exists()
