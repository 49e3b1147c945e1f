"""How a job drives an agent, with agents of the tests that have no framework."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from counterseal_conformance.agents.driver import (
    ERASE,
    MALFORMED,
    FileDriver,
    PausedDriver,
    Step,
)
from counterseal_conformance.scripting import NOTE
from counterseal_conformance.worker import Job, Pending, Report


def build_job(folder: Path, action: str, **more: Any) -> Job:
    """A job of the bare agent."""
    answers = {"*": {"verdict": "approve"}}
    return Job(
        action, "none", False, "thread", str(folder), NOTE, answers=answers, **more
    )


class NoteTaker(PausedDriver):
    """Notes every stored run from which it goes on; it never waits for people."""

    calls_in = "call"

    def start_run(self) -> Step:
        self.save({"paused": {"call": NOTE[0][0]}, "number": 1})
        return None

    def resume_bare(self) -> Step:
        return self.go_on({"paused": self.job.find_answer({"to": "ann"})})

    def build_redirection(self) -> Any:
        return ERASE

    async def go_on(self, stored: Any) -> None:
        self.job.ledger.mark(str(stored["paused"]))
        number = self.load()["number"] + 1
        self.save({"paused": stored["paused"], "number": number})

    async def read_report(self) -> Report:
        return Report(values=[self.load()["number"]])


def read_marks(job: Job) -> str:
    return job.ledger.path.read_text()


def run(folder: Path, action: str, **more: Any) -> tuple[Report, str]:
    """The report of a process of its own, and what all of them have noted."""
    job = build_job(folder, action, **more)
    # In a thread, as `tests.loops` says: a loop may be running in this one.
    with ThreadPoolExecutor(max_workers=1) as pool:
        report = pool.submit(NoteTaker(job).run).result()
    return report, read_marks(job) if job.ledger.path.exists() else ""


def test_steps_may_be_coroutines(tmp_path: Path) -> None:
    report, marks = run(tmp_path, "start")
    assert (report.state, report.values, marks) == ("finished", [1], "")
    report, marks = run(tmp_path, "resume")
    assert report.values == [2]
    assert "'verdict': 'approve'" in marks
    assert run(tmp_path, "list")[0].values == [2]


def test_hostile_code_leaves_the_stored_run_as_it_is(tmp_path: Path) -> None:
    run(tmp_path, "start")
    report, marks = run(tmp_path, "resume", hostile=True)
    assert report.values == [2]  # the third one has been put back
    assert marks.index("verdict") < marks.index("send_note")


@pytest.mark.parametrize(
    ("raw", "noted"),
    [
        ("approval", "send_note"),
        ("redirection", "erase_note"),
        ("malformed", MALFORMED),
    ],
)
def test_a_forged_answer_is_in_the_stored_run(
    tmp_path: Path, raw: str, noted: str
) -> None:
    run(tmp_path, "start")
    report, marks = run(tmp_path, "answer", raw=raw)
    assert report.values == [2]
    assert noted in marks


def test_a_late_answer_is_one_to_the_first_run(tmp_path: Path) -> None:
    run(tmp_path, "start")
    run(tmp_path, "resume")
    report, marks = run(tmp_path, "answer", raw="approval", interrupt_ids=["call_1"])
    assert report.values == [2]
    assert "send_note" in marks


class Counter(FileDriver):
    """Counts in the file that it has open."""

    def open(self, file: Path) -> None:
        self._database = sqlite3.connect(file)
        self._database.execute("CREATE TABLE IF NOT EXISTS steps (name TEXT)")

    def _add(self, name: str) -> None:
        with self._database:
            self._database.execute("INSERT INTO steps VALUES (?)", [name])

    def start_run(self) -> None:
        self._add("start")

    def resume_bare(self) -> None:
        self._add("resume")

    def approve_all(self) -> None:
        self._add("approve all")

    def read_report(self) -> Report:
        rows = self._database.execute("SELECT name FROM steps").fetchall()
        return Report("suspended", replies=[name for (name,) in rows])


def test_hostile_code_works_on_a_copy_of_the_file(tmp_path: Path) -> None:
    Counter(build_job(tmp_path, "start")).run()
    report = Counter(build_job(tmp_path, "resume", hostile=True)).run()
    assert report.replies == ["start", "resume"]
    with sqlite3.connect(tmp_path / "older.sqlite") as database:
        rows = database.execute("SELECT name FROM steps").fetchall()
    assert rows == [("start",), ("approve all",)]
    database.close()


def test_a_report_without_a_word_for_it_says_how_the_run_stands() -> None:
    waiting = Report(pending=[Pending.from_call(NOTE[0][0])], final="Words.")
    assert (waiting.state, waiting.final) == ("suspended", "")
    ended = Report(final="Words.")
    assert (ended.state, ended.final) == ("finished", "Words.")
