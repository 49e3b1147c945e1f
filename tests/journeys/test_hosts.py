"""T26: four hosts and a standby, under load, and each of them fails: nothing is lost,
nothing happens twice, and nobody is asked where nothing can be lost."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from counterseal_client import ApiError, Gate, Unreachable
from counterseal_client.calls import Connection
from counterseal_client.people import PeopleOperations, RequestDetail
from hitl.environment import LOOPBACK
from journal import failover
from tests import worlds
from tests.guards import ROOT, proving
from tests.journeys.fleet import seed
from tests.journeys.hosts import B, Hosts, start_hosts
from tests.stack import wait_until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.timeout(900),
    pytest.mark.allow_hosts([LOOPBACK, *(f"10.213.7.{n}" for n in range(1, 7))]),
    pytest.mark.skipif(not proving(), reason="only `make prove` takes five minutes"),
]

Value = TypeVar("Value")
CALLERS = 4
EACH_SIDE = 12  # actions before the fault, during one that lasts, and after it
WITHOUT_BROKER = 12  # calls that are answered while there is none
PATIENCE_S = 240.0  # for one action; other work of this machine slows it
SILENT_S = 3.0  # an approval that has led to nothing for so long is given again
MOST_ACTIONS = 400  # of one row
WORKER_S, WEB_S = 20.0, 10.0  # docs/failover.md
REPEATABLE = {"in_progress", "conflict", "too_many", "restored"}


class ActionLost(Exception):
    """The gate does not know a proposal that it had acknowledged."""


@dataclass
class Row:
    """What one fault led to."""

    name: str
    done: int = 0
    lost: int = 0
    doubled: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    gap_s: float = 0.0
    asked: int = 0
    note: str = ""

    def __str__(self) -> str:
        return (
            f"{self.name}: n={self.done}, lost {self.lost}, doubled {self.doubled},"
            f" failures that callers saw: {_list_counts(self.failures)}, repeated by"
            f" the client: {_list_counts(self.repeated)}, longest gap {self.gap_s:.1f}"
            f" s, people asked: {self.asked}" + (f", {self.note}" if self.note else "")
        )


def _list_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{n} x {what}" for what, n in counts.most_common()) or "none"


class Wire(httpx2.HTTPTransport):
    """Counts the calls that the client repeats."""

    def __init__(self, load: Load) -> None:
        super().__init__()
        self.load = load

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            answer = super().handle_request(request)
        except httpx2.TransportError as error:
            self.load.count(type(error).__name__)
            raise
        self.load.count(str(answer.status_code))
        return answer


@dataclass
class Load:
    """Callers that propose, approve and wait, one action after the other, with the
    client as it is installed."""

    url: str
    secrets: dict[str, str]
    name: str
    over: threading.Event = field(default_factory=threading.Event)
    failures: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    counting: threading.Lock = field(default_factory=threading.Lock)
    ended: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    customers: list[str] = field(default_factory=list)

    def count(self, outcome: str) -> None:
        """Count a call by its status, or by the error that came instead."""
        with self.counting:
            self.answers += outcome.isdecimal()
            if not outcome.startswith(("2", "4")):
                self.repeated[outcome] += 1

    def live(self, caller: int) -> None:
        number = 0
        with httpx2.Client(transport=Wire(self), trust_env=False) as http:
            gate = Gate(self.url, self.secrets["agent"], http=http)
            people = PeopleOperations(Connection(self.url, self.secrets["person"]))
            while not self.over.is_set() and len(self.ended) < MOST_ACTIONS:
                customer = f"{self.name}-{caller}-{number}"
                try:
                    self.act(gate, people, customer)
                except ActionLost:
                    self.lost.append(customer)
                self.customers.append(customer)
                self.ended.append(time.monotonic())
                number += 1

    def act(self, gate: Gate, people: PeopleOperations, customer: str) -> None:
        end = time.monotonic() + PATIENCE_S
        args = {"customer": customer, "amount": "4.00", "currency": "USD"}
        propose = partial(gate.propose, customer, "pay", args, idempotency_key=customer)
        known = self.insist(end, propose)
        while known.status != "executed":
            assert time.monotonic() < end, f"{customer}: {known}"
            if known.status == "pending":
                assert known.request is not None
                verdict = {
                    "version": 1,
                    "action_hash": known.action_hash,
                    "verdict": "approve",
                    "reason_code": "verified",
                }
                self.insist(
                    end, partial(decide, people, gate, known.request.id, verdict)
                )
            known = self.insist(end, partial(gate.wait, known.id, timeout=SILENT_S))

    def insist(self, end: float, call: Callable[[], Value]) -> Value:
        """What this call of the client returns, after as many tries as it takes; each
        failed one is counted."""
        while True:
            try:
                return call()
            except Unreachable:
                failure = "no answer"
            except ApiError as error:
                if error.status == 404:
                    raise ActionLost from error
                if error.status < 500 and error.code not in REPEATABLE:
                    raise
                failure = f"{error.status} {error.code}"
            self.failures[failure] += 1
            assert time.monotonic() < end, self.failures


def decide(
    people: PeopleOperations, gate: Gate, request: str, verdict: dict[str, Any]
) -> RequestDetail:
    return gate.run(people.decide(request, verdict))


@contextmanager
def load(hosts: Hosts, secrets: dict[str, str], name: str) -> Iterator[Load]:
    """Callers until the block is left. A failure of theirs is one of the block."""
    running = Load(hosts.url, secrets, name)
    with ThreadPoolExecutor(CALLERS) as pool:
        jobs = [pool.submit(running.live, number) for number in range(CALLERS)]
        try:
            wait_for_more(running, EACH_SIDE)
            yield running
            wait_for_more(running, EACH_SIDE)
        finally:
            running.over.set()
        for job in jobs:
            job.result()


def wait_for_more(running: Load, count: int) -> None:
    goal = len(running.ended) + count
    wait_until(
        lambda: len(running.ended) >= goal, PATIENCE_S, lambda: str(running.failures)
    )


class Drill:
    """One set-up, and the table of what its faults led to."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts, self.rows, self.began = hosts, list[Row](), time.monotonic()
        self.secrets = seed(ROOT, hosts.members[B].environ)
        wait_until(hosts.is_noted, 60)  # with the first record of the log

    def run(self, name: str, fault: Callable[[Row], None]) -> Row:
        row = Row(name)
        with load(self.hosts, self.secrets, f"r{len(self.rows)}") as running:
            self.running = running
            fault(row)
        self.measure(row, running)
        self.rows.append(row)
        sys.stdout.write(f"\n{time.monotonic() - self.began:.0f} s: {row}\n")
        sys.stdout.flush()
        return row

    def measure(self, row: Row, running: Load) -> None:
        row.done, row.lost = len(running.ended), len(running.lost)
        row.failures, row.repeated = running.failures, running.repeated
        times = sorted(running.ended)
        row.gap_s = max(b - a for a, b in pairwise(times))
        happened = Counter(
            args["customer"]
            for _, _, args in worlds.effects(self.hosts.folder / "ledger.sqlite")
        )
        mine = [happened[customer] for customer in running.customers]
        row.doubled = sum(count > 1 for count in mine)
        executed = [
            happened[customer]
            for customer in running.customers
            if customer not in running.lost
        ]
        assert all(executed), "an action that was reported as executed happened"

    def stop_worker(self, row: Row) -> None:
        member = self.hosts.members[B]
        seconds = member.stop_worker()
        assert seconds < WORKER_S
        row.note = f"the worker ended in {seconds:.1f} s"
        member.launch_worker()
        member.wait_until_up()

    def restart_all(self, row: Row) -> None:
        for member in self.hosts.members.values():
            member.stop_worker()
            member.launch_worker()
            assert member.stop_web() < WEB_S
            member.launch_web()
            member.wait_until_up()

    def fill_state(self, row: Row) -> None:
        make_room = self.hosts.fill_state(B)
        self.rest()
        make_room()

    def replace_broker(self, row: Row) -> None:
        assert self.hosts.broker is not None
        self.hosts.broker.kill()
        goal = self.running.answers + WITHOUT_BROKER
        wait_until(lambda: self.running.answers >= goal, PATIENCE_S)
        self.hosts.start_broker()

    def pool(self, row: Row) -> None:
        member = self.hosts.members[B]
        direct = member.environ["DATABASE_URL"]
        member.kill()
        member.environ["DATABASE_URL"] = self.hosts.start_pooler()
        member.start()

        self.rest()
        member.kill()
        member.environ["DATABASE_URL"] = direct
        member.start()

    def rest(self) -> None:
        """Let the callers do some actions with what has changed."""
        wait_for_more(self.running, EACH_SIDE)

    def kill_host(self, row: Row) -> None:
        """All of it at once; it comes back later."""
        member = self.hosts.members[B]
        member.kill()
        self.hosts.network.cut(B)
        self.rest()
        self.hosts.network.mend(B)
        member.start()

    def fail_over(self, row: Row) -> None:
        self.hosts.fail_over()

    def fail_over_behind(self, row: Row) -> None:
        """The standby misses the last actions; two people confirm."""
        self.hosts.standby.configure("primary_conninfo", "")  # it streams no more
        self.rest()
        self.hosts.fail_over()
        wait_until(lambda: self.count_waiting() == 1, 60)
        for name in ("sue", "sam"):
            self.hosts.manage("restored", "--by", name, "--reason", "looked")
            row.asked += 1

    def count_waiting(self) -> int:
        rows = self.hosts.query(
            "SELECT count(*) FROM journal_epoch WHERE began_at IS NULL"
        )
        return int(rows[0][0])


def check_restored(hosts: Hosts) -> None:
    """A backup that is put back was no standby, though its timeline is a newer one."""
    server, streamed = hosts.standby, failover._STREAMED.text
    server.restore(hosts.primary)
    timeline = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)"
    assert server.query(timeline) > hosts.primary.query(timeline)
    assert server.query(streamed) == [(False,)]
    assert hosts.primary.query(streamed) == [(True,)]
    server.kill()


@pytest.fixture
def drill(tmp_path: Path) -> Iterator[Drill]:
    with start_hosts(tmp_path / "hosts", failover="synchronous") as hosts:
        hosts.replicate(synchronous=True)
        hosts.start_proxy()
        yield Drill(hosts)


def test_hosts_fail_under_load(
    drill: Drill, record_proof: Callable[[str, str], None]
) -> None:
    hosts = drill.hosts
    drill.run("SIGTERM of a worker", drill.stop_worker)
    drill.run("each worker and web process restarted, host by host", drill.restart_all)
    drill.run("STATE of one host full", drill.fill_state)
    drill.run("the broker killed, an empty one later", drill.replace_broker)
    drill.run("one host behind pgbouncer in session mode", drill.pool)
    drill.run("one host killed and cut off", drill.kill_host)
    synchronous = drill.run("primary killed, synchronous", drill.fail_over)
    assert hosts.query("SELECT hosts FROM journal_promotion")
    assert drill.count_waiting() == 0
    check_restored(hosts)
    hosts.replicate(synchronous=False)
    hosts.set_mode("confirm")
    drill.run("primary killed, asynchronous", drill.fail_over_behind)
    assert synchronous.asked == 0
    assert not any(row.failures for row in drill.rows[:-1])
    assert not any(row.lost for row in drill.rows[:-1])
    assert not any(row.doubled for row in drill.rows)
    for row in drill.rows:
        record_proof("T26", str(row))
