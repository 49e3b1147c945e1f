"""Durable state: what survives while people decide."""

from __future__ import annotations

from ..catalogue import expect
from ..scripting import DONE, NOTE
from ..subject import Subject


def check_nothing_held(subject: Subject) -> None:
    """The process of the first run has ended by itself when `start` returns."""
    subject.start_waiting(NOTE)
    expect(subject.effects == [], "the effect came before the approval")


def check_agent_killed(subject: Subject) -> None:
    """SIGKILL in place of an orderly end."""
    subject.script = NOTE
    process = subject.spawn("start")
    process.read_report()
    process.kill()
    subject.decide("approve")
    subject.resume()
    expect_one_effect(subject)


def check_gate_killed(subject: Subject) -> None:
    """With Counterseal its web processes keep the request, else the agent's does."""
    subject.script = NOTE
    process = subject.spawn("start")
    process.read_report()
    process.kill()
    if subject.gated:
        subject.target.restart_web()
    expect(subject.count_waiting() == 1, "the request is gone")
    subject.decide("approve")
    subject.resume()
    expect_one_effect(subject)


def check_other_process(subject: Subject) -> None:
    """Every `resume` is a new process, and it sends no message."""
    subject.start_waiting(NOTE)
    subject.decide("approve")
    report = subject.resume()
    expect_one_effect(subject)
    expect(report.final == DONE, f"the model did not go on: {report}")


def check_nested(subject: Subject) -> None:
    """The scripted agent sits behind a tool of another agent."""
    report = subject.start(NOTE, nested=True)
    expect(len(report.pending) == 1, f"the nested call did not surface: {report}")
    subject.decide("approve")
    report = subject.resume()
    expect_one_effect(subject)
    expect(report.final == DONE, f"the outer model did not go on: {report}")


def expect_one_effect(subject: Subject) -> None:
    """Raise CheckFailed for another number of effects."""
    count = len(subject.effects)
    expect(count == 1, f"{count} effects instead of one")


CHECKS = {
    "durable.nothing_held": check_nothing_held,
    "durable.agent_killed": check_agent_killed,
    "durable.gate_killed": check_gate_killed,
    "durable.other_process": check_other_process,
    "durable.nested": check_nested,
}
