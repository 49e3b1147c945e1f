"""Pluggable channels: each one that exists carries a decision, or the word of one, from
a person to the suspended agent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from counterseal_client import webhooks
from counterseal_client.handlers import (
    ApprovalDecision,
    TerminalApprovalHandler,
    ToolApprovalRequest,
)

from ..catalogue import CheckNotRun, expect
from ..scripting import NOTE, WORDS
from ..subject import Subject, wait_for
from .durable import expect_one_effect


def check_page(subject: Subject) -> None:
    """The page's own form, sent as a browser without JavaScript sends it."""
    reviewer = subject.target.sign_in("reviewer")
    subject.start_waiting(NOTE)
    request = subject.find_request()["id"]
    reviewer.open(f"/requests/{request}/decide/?arm=approve")
    reviewer.submit("verdict", {"reason_code": "verified"})
    subject.resume()
    expect_one_effect(subject)


def check_people_api(subject: Subject) -> None:
    """A script of the reviewer approves."""
    subject.start_waiting(NOTE)
    expect(subject.decide("approve"), "the decision was refused")
    subject.resume()
    expect_one_effect(subject)


def check_terminal(subject: Subject) -> None:
    """The handler finds the proposal of the suspended call, and asks its person."""
    subject.start_waiting(NOTE)
    lines: list[str] = []
    handler = TerminalApprovalHandler(
        subject.gate,
        subject.target.get_token("reviewer"),
        ask=lambda _: "approve",
        show=lines.append,
    )
    decision = handler.request(
        ToolApprovalRequest(
            tool="send_note",
            args=NOTE[0][0]["args"],
            thread=subject.thread,
            call_id=NOTE[0][0]["id"],
            details={"rationale": WORDS},
        )
    )
    expect(decision is ApprovalDecision.APPROVED, f"the answer was {decision}")
    expect(any("hello" in line for line in lines), "the terminal showed no arguments")
    subject.resume()
    expect_one_effect(subject)


def check_mail(subject: Subject) -> None:
    """The gate's mails, in the folder where this gate leaves them."""
    if not subject.target.mail:
        raise CheckNotRun("this gate's mails cannot be read")
    subject.start_waiting(NOTE)
    link = f"/requests/{subject.find_request()['id']}/"
    folder = Path(subject.target.mail)
    wait_for(
        lambda: any(link in file.read_text() for file in folder.glob("*")),
        "no mail links the request",
    )


def check_webhook(subject: Subject) -> None:
    """A server of the agent receives the event and verifies its signature."""
    endpoint = subject.target.endpoint
    if not endpoint:
        raise CheckNotRun("the agent has no endpoint at this gate")
    subject.start_waiting(NOTE)
    with receive_events(int(endpoint["port"]), str(endpoint["secret"])) as events:
        subject.decide("approve")
        subject.wait_for_undo_window()
        wait_for(
            lambda: any(
                event.thread == subject.thread and event.type == "proposal.settled"
                for event in events
            ),
            "no webhook told of the decision",
        )
    subject.resume()
    expect_one_effect(subject)


@contextmanager
def receive_events(port: int, secret: str) -> Iterator[list[webhooks.Event]]:
    """The verified events that arrive at this port of this machine."""
    events: list[webhooks.Event] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                events.append(webhooks.verify(dict(self.headers), body, secret))
                self.send_response(204)
            except webhooks.NotVerified:
                self.send_response(401)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """The kit prints its own lines."""

    with ThreadingHTTPServer(("127.0.0.1", port), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield events
        finally:
            server.shutdown()
            thread.join()


CHECKS = {
    "channels.page": check_page,
    "channels.people_api": check_people_api,
    "channels.terminal": check_terminal,
    "channels.mail": check_mail,
    "channels.webhook": check_webhook,
}
