"""The administrative interface: the pages that people have, and what they change."""

from __future__ import annotations

from ..catalogue import expect
from ..scripting import NOTE
from ..subject import Subject, wait_for

REASON = "Ann is on leave until Monday."


def check_queue(subject: Subject) -> None:
    """The queue's page, for a person who may decide. It shows equal requests in one
    row, so the check looks for this one."""
    reviewer = subject.target.sign_in("reviewer")
    subject.start_waiting(NOTE)
    request = subject.find_request()["id"]
    page = reviewer.open(f"/queue/?q={request}")
    expect(f'href="/requests/{request}/' in page, "the queue does not list the request")


def check_detail(subject: Subject) -> None:
    """The request's page."""
    reviewer = subject.target.sign_in("reviewer")
    subject.start_waiting(NOTE)
    request = subject.find_request()["id"]
    page = reviewer.open(f"/requests/{request}/")
    for name, value in NOTE[0][0]["args"].items():
        expect(value in page, f"the page does not show {name}")


def check_decision(subject: Subject) -> None:
    """A rejection on the page, read by the agent."""
    reviewer = subject.target.sign_in("reviewer")
    subject.start_waiting(NOTE)
    row = subject.find_request()
    reviewer.open(f"/requests/{row['id']}/decide/?arm=reject")
    reviewer.submit("verdict", {"reason_code": "other", "reason": REASON})
    decision = subject.gate.get(row["proposal"]).decision
    expect(decision is not None, "no decision is kept")
    assert decision is not None
    kept = (decision.by_role, decision.reason, decision.verdict)
    expect(kept == ("reviewer", REASON, "reject"), f"the decision is {decision}")
    expect(decision.decided_at is not None, "the decision has no time")
    report = subject.resume()
    expect(REASON in " ".join(report.replies), "the model did not get the reason")


def check_log(subject: Subject) -> None:
    """The audit log's page, filtered by the run."""
    auditor = subject.target.sign_in("auditor")
    subject.start_waiting(NOTE)
    subject.decide("approve")
    subject.resume()
    steps = ("proposed", "approval requested", "approved", "succeeded")

    def lists_all_steps() -> bool:
        page = auditor.open(f"/log/?q={subject.thread}").lower()
        return all(step in page for step in steps)

    # The search finds a run shortly after it began.
    wait_for(lists_all_steps, f"the log does not say all of {', '.join(steps)}")


def check_stop(subject: Subject) -> None:
    """A supervisor stops the run after its call was approved."""
    supervisor = subject.target.sign_in("supervisor")
    subject.start_waiting(NOTE)
    subject.decide("approve")
    supervisor.open(f"/stop/?agent={subject.target.agent}&thread={subject.thread}")
    supervisor.submit("target", {"reason_code": "wrong", "reason": REASON})
    subject.resume()
    expect(subject.effects == [], "it ran after the stop")


CHECKS = {
    "admin.queue": check_queue,
    "admin.detail": check_detail,
    "admin.decision": check_decision,
    "admin.log": check_log,
    "admin.stop": check_stop,
}
