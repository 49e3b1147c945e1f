"""T25, as an operator would live through it: a backup is taken while work goes on, what
came after it runs, the disk is lost, and the backup is put back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import redis
from celery import Celery
from django.db import connection
from pytest_django import DjangoDbBlocker

from agents import keys
from journal.models import Epoch, LogRecord
from reviews.choices import AlarmKind, ExecutionStatus, RequestStatus
from reviews.models import Alarm, ApprovalRequest, Execution
from reviews.people import tokens
from tests import factories, guards, worlds
from tests.factories import decide, propose
from tests.journeys.backing_up import WAYS, Backup
from tests.journeys.elsewhere import Elsewhere, installed
from tests.stack import wait_until

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.timeout(1200)]

TOOLS = ["pay", "pay_queryable", "pay_opaque"]
ENDED = [ExecutionStatus.SUCCEEDED, ExecutionStatus.UNKNOWN]
DELIVERIES = 4


@pytest.mark.parametrize("way", list(WAYS)[: guards.proof_n(1, len(WAYS))])
def test_nothing_runs_again_after_a_backup_was_put_back(
    way: str,
    tmp_path: Path,
    empty_world: None,
    django_db_blocker: DjangoDbBlocker,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    each = proof_n(small=1, full=40)
    with django_db_blocker.unblock(), installed(tmp_path / "state") as other:
        tried = Drill(other, each).run(WAYS[way](other, tmp_path / "backup"))
    record_proof(
        "T25",
        f"{way} put back after 3 classes x {3 * each} effects, those of"
        f" {2 * 3 * each} executions later than that: 0 effects in {tried}"
        " deliveries while two people had not looked, 0 of"
        f" {3 * 3 * each} ran again afterwards (at most {3 / (9 * each):.1%} at 95 %);"
        f" keyed and queryable told as done, {2 * each} opaque as unknown",
    )


class Drill:
    """One installation, its people, and what really happened in the world."""

    def __init__(self, other: Elsewhere, each: int) -> None:
        self.other, self.each = other, each
        self.people = factories.cast()
        factories.policy(self.people)
        self.agent = factories.agent(self.people["owen"])

    def run(self, backup: Backup) -> int:
        """How many deliveries were tried while nothing may run."""
        stack = self.other.stack
        stack.start_worker()
        self.approve(self.ask("before"))
        self.wait_ended(3 * self.each)
        stack.kill_worker()
        queued, asked = self.ask("queued"), self.ask("asked")
        self.approve(queued)
        backup.take()
        self.approve(asked)
        stack.start_worker()
        self.wait_ended(9 * self.each)
        happened = self.happened()
        assert set(happened.values()) == {1}
        assert len(happened) == 9 * self.each
        stack.kill_worker()

        backup.put_back()
        tried = self.holds(queued, asked)
        assert self.happened() == happened
        self.looked_at()
        self.approve(asked)
        self.wait_ended(9 * self.each)
        assert self.happened() == happened
        self.check(queued + asked)
        self.goes_on(happened)
        return tried

    def ask(self, name: str) -> list[ApprovalRequest]:
        return [
            propose(self.agent, tool, customer=f"{name}-{n}", thread=name).request
            for tool in TOOLS
            for n in range(self.each)
        ]

    def approve(self, requests: list[ApprovalRequest]) -> None:
        for request in requests:
            decide(request, self.people["rita"])

    def wait_ended(self, count: int) -> None:
        def ended() -> bool:
            return Execution.objects.filter(status__in=ENDED).count() == count

        wait_until(ended, 60 + self.each, self.left)

    def left(self) -> str:
        rows = Execution.objects.exclude(status__in=ENDED)
        return f"{list(rows.values())}\n{self.other.stack.log('worker')}"

    def happened(self) -> Counter[str]:
        return Counter(key for _, key, _ in worlds.effects())

    def holds(self, queued: list[ApprovalRequest], asked: list[ApprovalRequest]) -> int:
        """Every way to an effect is tried, and none leads there."""
        stack = self.other.stack
        stack.start_web()
        stack.start_worker()
        wait_until(lambda: Epoch.objects.exists(), 20, self.left)
        assert Alarm.objects.get(kind=AlarmKind.RESTORED).status == "open"
        ready = httpx2.get(f"{stack.base_url}/readyz", trust_env=False)
        assert ready.json()["status"] == "restored"
        pks = [r.proposal.executions.get().pk for r in queued]
        self.deliver(pks)
        self.refused(asked[0])
        statuses = Execution.objects.filter(pk__in=pks).values_list("status", flat=True)
        assert set(statuses) == {ExecutionStatus.QUEUED}
        return len(pks) * DELIVERIES

    def deliver(self, executions: list[str]) -> None:
        """Hand every one over again and again, and wait until all were taken."""
        url = f"redis+socket://{self.other.here.valkey_socket}"
        app = Celery(broker=url, set_as_current=False)
        with redis.Redis.from_url(self.other.here.redis_url) as broker:
            left = broker.hlen("unacked")  # by the worker that was killed
            for pk in executions * DELIVERIES:
                task = "hitl.tasks.run_execution"
                app.send_task(task, args=[pk], queue="effects", ignore_result=True)

            def taken() -> bool:
                return not broker.llen("effects") and broker.hlen("unacked") <= left

            wait_until(taken, 60, self.left)

    def refused(self, request: ApprovalRequest) -> None:
        """The agent and a reviewer, over HTTP."""
        said = self.post(
            f"requests/{request.pk}/decide",
            tokens.create_token(person=self.people["rita"], name="script"),
            version=request.version,
            action_hash=request.action_hash,
            verdict="approve",
        )
        assert (said.status_code, said.json()["code"]) == (503, "restored")
        key = keys.issue_key(agent=self.agent, by=self.people["owen"])
        said = self.post("proposals", key, thread="t-1", tool="look", args={"q": "x"})
        assert (said.status_code, said.json()["code"]) == (503, "restored")
        request.refresh_from_db()
        assert request.status == RequestStatus.PENDING

    def post(self, path: str, key: str, **body: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "k-1"}
        url = f"{self.other.stack.base_url}/api/v1/{path}"
        with httpx2.Client(trust_env=False, timeout=20) as client:
            return client.post(url, json=body, headers=headers)

    def looked_at(self) -> None:
        """By two people, with the command."""
        reason = ["--reason", "the disk was lost; the books were compared"]
        assert "second person" in self.other.manage("restored", "--by", "sue", *reason)
        assert "Epoch 2 begins" in self.other.manage("restored", "--by", "sam", *reason)

    def check(self, requests: list[ApprovalRequest]) -> None:
        """What can be known is told as it was; the rest is a question for people."""
        for request in requests:
            execution = request.proposal.executions.get()
            opaque = request.proposal.tool_name == "pay_opaque"
            told = ENDED[1] if opaque else ENDED[0]
            assert execution.status == told, execution.detail
        epoch = Epoch.objects.get()
        assert epoch.from_record is not None
        assert LogRecord.objects.get(kind="epoch.began").pk > epoch.from_record

    def goes_on(self, happened: Counter[str]) -> None:
        """What is proposed now runs as ever, on every class."""
        self.approve(self.ask("new"))
        self.wait_ended(12 * self.each)
        assert self.happened().total() == happened.total() + 3 * self.each
        connection.close()
