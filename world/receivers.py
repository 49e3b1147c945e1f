"""What agents and people receive: webhooks and mails, and what agents did about them.

The receivers keep it as rows of a ledger. Agents' servers check a webhook as the
product's client does, do their work about an outcome once, and then answer; some tell
the gate by a call before that. Some first webhooks of an id are refused, lost, done and
not answered, or answered too late: drawn from the id, so that it heals. A few are
refused twice. The gate tries again after 5 s, then 10 s. What its schedule does later
(to 6 h, for three days), and an endpoint that is gone or switched off, is covered by
tests/agents/webhooks/test_delivery.py.

The mail server speaks just so much of SMTP (RFC 5321) as Django's backend speaks. It
writes a mail's recipient and subject down before its 250.
"""

from __future__ import annotations

import hashlib
import socketserver
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from email import message_from_bytes, policy

import httpx2

from counterseal_client import Backoff, Gate, webhooks
from counterseal_client.errors import CountersealError

from .database import Ledger, add_entry, load_entries
from .services import draw_mishap


@dataclass(frozen=True, slots=True)
class Listener:
    """An agent's server: what it checks webhooks with, and how it says that it has one:
    by its `answer`, or by a `call` of the gate before that."""

    agent: str
    secret: str
    key: str
    gate: str  # addresses of the web processes
    says: str


@dataclass(frozen=True)
class Arrival:
    """One request at an agent's server. A `good` one was signed by the gate, just now,
    for this agent. `body` is a hash. `answer` is empty until there is one."""

    at: float
    agent: str
    message: str
    good: bool
    body: str
    outcome: str
    proposal: str
    status: str
    answer: str = ""


@dataclass(frozen=True)
class Act:
    """What an agent did about one outcome; `by` is hook or driver."""

    agent: str
    proposal: str
    status: str
    outcome: str
    by: str
    at: float


class Acknowledgement(Act):
    """The gate answered 200 to the agent's word that it has this outcome."""


@dataclass(frozen=True)
class Mail:
    """One mail that a server took."""

    recipient: str
    subject: str
    at: float


def act_once(ledger: Ledger, act: Act) -> None:
    """The agent's own work about an outcome, in one transaction with the outcome's
    name, as in client/examples/acts_once.py."""
    with ledger.writing() as db:
        if not load_entries(db, Act, outcome=act.outcome):
            add_entry(db, act)


def acknowledge(ledger: Ledger, act: Act) -> None:
    ledger.add(Acknowledgement(**{**asdict(act), "at": time.time()}))


# How many of a thousand webhooks end so, the first time and the second.
MISHAPS = (
    {30: "refused", 45: "asked to wait", 60: "lost", 75: "unsaid", 90: "late"},
    {5: "refused"},
)
LATE_S = 1.3  # more than the gate waits
RETRY_AFTER_S = "1"
QUICK = Backoff(attempts=2, first=0.05, longest=0.1, patience=1.0)


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, or None for no answer at all."""

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)


class WebhookReceiver:
    """The agents' servers, in one process, for any number of threads."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._listeners = {row.agent: row for row in ledger.load(Listener)}

    def hear(self, agent: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """One webhook: it is written down first, then acted on, then answered."""
        listener, at = self._listeners.get(agent), time.time()
        if listener is None:
            return Answer(404)
        message, digest = (
            headers.get("webhook-id", ""),
            hashlib.sha256(body).hexdigest(),
        )
        try:
            event = webhooks.verify(headers, body, listener.secret)
        except webhooks.NotVerified:
            event = None
        about = (event.outcome, event.proposal, event.status) if event else ("", "", "")
        arrival = Arrival(at, agent, message, event is not None, digest, *about)
        with self._ledger.writing() as db:
            before = len(load_entries(db, Arrival, message=message))
            number = add_entry(db, arrival)
        answer = self._answer(listener, event, before) if event else Answer(401)
        with self._ledger.writing() as db:
            query = "UPDATE arrival SET answer = ? WHERE rowid = ?"
            db.execute(query, (str(answer.status or "nothing"), number))
        return answer

    def _answer(self, to: Listener, event: webhooks.Event, before: int) -> Answer:
        mishap = find_mishap(event.id, before)
        if mishap == "refused":
            return Answer(503)
        if mishap == "asked to wait":
            return Answer(503, {"Retry-After": RETRY_AFTER_S})
        if mishap == "lost":
            return Answer(None)
        if event.outcome and not self._take(to, event):
            return Answer(503)
        if mishap == "late":
            time.sleep(LATE_S)
        return Answer(None if mishap == "unsaid" else 200)

    def _take(self, to: Listener, event: webhooks.Event) -> bool:
        """Work first, then the word; whether the gate has heard it, where it is to."""
        act = Act(
            to.agent, event.proposal, event.status, event.outcome, "hook", time.time()
        )
        act_once(self._ledger, act)
        if to.says == "call":
            if not _call_gate(to, event):
                return False
            acknowledge(self._ledger, act)
        return True


def _call_gate(to: Listener, event: webhooks.Event) -> bool:
    """Whether one of the web processes took the agent's word."""
    for address in to.gate.split():
        http = httpx2.Client(trust_env=False, timeout=1)
        try:
            with Gate(address, to.key, backoff=QUICK, http=http) as gate:
                proposal = gate.get(event.proposal)
                outcome = {"outcome": event.outcome}
                gate.acknowledge(proposal.model_copy(update=outcome))
        except CountersealError:
            continue
        return True
    return False


def find_mishap(message: str, before: int) -> str:
    """What goes wrong with a webhook that came so often before."""
    return draw_mishap(message, MISHAPS[before]) if before < len(MISHAPS) else ""


READY = b"220 world\r\n"
FINE = b"250 OK\r\n"
ANSWERS = {
    b"EHLO": b"250 world\r\n",
    b"DATA": b"354 Go on\r\n",
    b"QUIT": b"221 Bye\r\n",
}
KNOWN = {b"HELO", b"MAIL", b"RCPT", b"RSET", b"NOOP"}


class MailServer(socketserver.ThreadingTCPServer):
    """In a thread of its own, on a free port of the given address."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, ledger: Ledger) -> None:
        super().__init__((host, 0), SmtpHandler)
        self.ledger = ledger

    @property
    def url(self) -> str:
        """As `MAIL_URL` wants it."""
        host, port = self.server_address[:2]
        return f"smtp://{host!s}:{port}"

    def open(self) -> None:
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: callers are killed all the time."""


class SmtpHandler(socketserver.StreamRequestHandler):
    """One caller; as many mails as it has."""

    server: MailServer
    timeout = 30

    def handle(self) -> None:
        self.wfile.write(READY)
        recipients: list[str] = []
        while line := self.rfile.readline():
            verb = line[:4].upper()
            if verb == b"RCPT":
                # Of `RCPT TO:<rita@example.com>`
                recipients.append(line.partition(b"<")[2].partition(b">")[0].decode())
            usual = FINE if verb in KNOWN else b"502 Not here\r\n"
            self.wfile.write(ANSWERS.get(verb, usual))
            if verb == b"QUIT":
                return
            if verb == b"DATA":
                self._take_mail(recipients)
                recipients = []

    def _take_mail(self, recipients: list[str]) -> None:
        """A mail that is cut off in the middle is none: nobody is told that it is."""
        raw = b""
        while (line := self.rfile.readline()) != b".\r\n":
            if not line:
                return
            raw += line.removeprefix(b".")
        subject = str(message_from_bytes(raw, policy=policy.default)["Subject"])
        for recipient in recipients:
            self.server.ledger.add(Mail(recipient, subject, time.time()))
        self.wfile.write(FINE)
