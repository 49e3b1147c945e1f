"""A writer of the history is killed: the next start writes the whole one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from hitl.environment import ROOT
from journal.models import LogRecord
from policies.models import Person, PolicyVersion
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Decision, Execution
from tests.journeys import elsewhere
from tests.journeys.elsewhere import Elsewhere
from tests.stack import PATIENCE_S, wait_until

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]

COMMAND = "write_demo_history"


@pytest.fixture
def unfinished(tmp_path: Path) -> Iterator[Elsewhere]:
    """An installation in which a writer was killed after a few cases."""
    with elsewhere.installed(tmp_path / "state") as other:
        argv = [sys.executable, "manage.py", COMMAND]
        with subprocess.Popen(argv, cwd=ROOT, env=other.stack.environ) as writer:
            try:
                wait_until(lambda: Execution.objects.count() > 3, PATIENCE_S)
                assert writer.poll() is None, "it ended before it could be killed"
            finally:
                writer.kill()
        assert _count_remains() > 1
        yield other


def test_the_next_start_writes_the_whole_history(unfinished: Elsewhere) -> None:
    first = LogRecord.objects.count()
    assert "The history is written." in unfinished.manage(COMMAND)
    connection.close()  # it knows the former tables
    assert LogRecord.objects.count() > max(first, 700)
    assert [Person.objects.count(), PolicyVersion.objects.count()] == [8, 3]
    waiting = ApprovalRequest.objects.filter(status=RequestStatus.PENDING)
    assert not waiting.exists()
    unfinished.manage("verify_log")  # fails for another log than this host has seen
    assert _count_remains() == 0
    assert "nothing is done" in unfinished.manage(COMMAND)


def test_what_people_did_since_then_is_kept(unfinished: Elsewhere) -> None:
    unfinished.manage("seed_demo")  # as a start with HISTORY=0
    records, decisions = LogRecord.objects.count(), Decision.objects.count()
    assert "nothing is done" in unfinished.manage(COMMAND)
    assert LogRecord.objects.count() == records
    assert Decision.objects.count() == decisions
    assert _count_remains() == 0


def _count_remains() -> int:
    """How much is left of the shift of the clock: its schema, and triggers."""
    with connection.cursor() as cursor:
        cursor.execute("""
            SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = 'history')
                 + (SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'history%')
        """)
        return int(cursor.fetchone()[0])
