"""Idempotent retry: however often something runs, the effect happens once."""

from __future__ import annotations

from ..catalogue import expect
from ..scripting import NOTE, build_turn
from ..subject import Subject
from .durable import expect_one_effect

RESUMES = 3
"""How often a driver resumes a run that its process left in the middle."""
LEASE_SECONDS = 60.0
"""The most that a killed attempt keeps an effect from its next one."""


def check_proposed_once(subject: Subject) -> None:
    """What a crash makes this framework run again runs again, without an answer: the
    stored state, or the run before it was stored."""
    subject.start_waiting(NOTE)
    subject.run("rerun")
    marks = subject.ledger.count_marks()
    expect(marks > 1, f"the code before the pause ran {marks} times: nothing is shown")
    waiting = subject.count_waiting()
    expect(waiting == 1, f"people are asked {waiting} times")
    subject.decide("approve")
    subject.resume()
    expect_one_effect(subject)


def check_double_resume(subject: Subject) -> None:
    """Both processes are loaded when the barrier falls, and the effect waits a moment
    for the second one."""
    subject.start_waiting(NOTE)
    subject.decide("approve")
    barrier = subject.folder / "barrier"
    both = [
        subject.spawn("resume", barrier=str(barrier), rendezvous=True, wait_seconds=10)
        for _ in range(2)
    ]
    barrier.touch()
    reports = [process.read_report() for process in both]
    for process in both:
        process.end()
    expect(bool(subject.effects), f"nothing ran: {reports}")
    expect_one_effect(subject)


def check_effect_retried(subject: Subject) -> None:
    """The process kills itself in the tool, after the ledger has the effect."""
    subject.start_waiting(NOTE)
    subject.decide("approve")
    subject.spawn("resume", kill_after_effect=True).wait_for_death()
    expect_one_effect(subject)
    for _ in range(RESUMES):
        report = subject.resume(wait_seconds=LEASE_SECONDS, after_crash=True)
        if report.state == "finished":
            break
    expect(report.state == "finished", f"the run does not end: {report}")
    expect_one_effect(subject)


def check_late_answer(subject: Subject) -> None:
    """The same interrupts are answered again after the end."""
    report = subject.start_waiting(NOTE)
    subject.decide("approve")
    subject.resume()
    expect_one_effect(subject)
    answered = [call.interrupt_id for call in report.pending]
    subject.run("answer", raw="approval", interrupt_ids=answered)
    expect_one_effect(subject)


def check_duplicate_id(subject: Subject) -> None:
    """Two different calls share an id; whatever then waits is approved."""
    note = ("call_1", "send_note", {"to": "ann", "text": "hello"})
    erase = ("call_1", "erase_note", {"to": "ann"})
    report = subject.start([build_turn(note, erase)])
    subject.decide("approve")
    if report.pending:
        subject.resume()
    ran = [effect.tool for effect in subject.effects]
    expect(ran == [], f"{' and '.join(ran)} ran")


CHECKS = {
    "idempotent.proposed_once": check_proposed_once,
    "idempotent.double_resume": check_double_resume,
    "idempotent.effect_retried": check_effect_retried,
    "idempotent.late_answer": check_late_answer,
    "idempotent.duplicate_id": check_duplicate_id,
}
