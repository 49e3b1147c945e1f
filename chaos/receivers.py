"""What agents and people receive: webhooks and mails, and what agents did about them.

The receivers keep it in tables beside the services' ledger, in the same file; each
writer has a connection of its own.

Agents' servers listen at `/hooks/<agent>`. Each checks a webhook as the product's
client does, does its work about an outcome once, and then answers; some tell the gate
by a call before that. Some first webhooks of an id are refused, lost, done and not
answered, or answered too late: drawn from the id, so that it heals. A few are refused
twice. The gate tries again after 5 s, then 10 s. What its schedule does later (to 6 h,
for three days), and an endpoint that is gone or switched off, is covered by
tests/agents/webhooks/test_delivery.py.

The mail server speaks just so much of SMTP (RFC 5321) as Django's backend speaks. It
writes a mail's recipient and subject down before its 250.
"""

from __future__ import annotations

import hashlib
import socketserver
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from counterseal_client import Backoff, Gate, webhooks
from counterseal_client.errors import CountersealError

SCHEMA = """
    CREATE TABLE IF NOT EXISTS listener (
        agent TEXT PRIMARY KEY, secret TEXT, key TEXT, gate TEXT, says TEXT
    );
    CREATE TABLE IF NOT EXISTS arrival (
        id INTEGER PRIMARY KEY, at REAL, agent TEXT, message TEXT, good INTEGER,
        body TEXT, outcome TEXT, proposal TEXT, status TEXT, answer TEXT
    );
    CREATE INDEX IF NOT EXISTS arrival_by_message ON arrival (message);
    CREATE TABLE IF NOT EXISTS taken (outcome TEXT PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS work (
        agent TEXT, proposal TEXT, status TEXT, outcome TEXT, by TEXT, at REAL
    );
    CREATE TABLE IF NOT EXISTS acknowledged (
        agent TEXT, proposal TEXT, status TEXT, outcome TEXT, by TEXT, at REAL
    );
    CREATE TABLE IF NOT EXISTS mail (recipient TEXT, subject TEXT, at REAL);
"""
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Listener:
    """An agent's server: what it checks webhooks with, and how it says that it has one:
    by its `answer`, or by a `call` of the gate before that."""

    agent: str
    secret: str
    key: str
    gate: str  # addresses of the web processes
    says: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request at an agent's server. `answer` is empty until there is one."""

    at: float
    agent: str
    message: str
    good: bool  # signed by the gate, now, for this agent
    body: str  # its hash
    outcome: str
    proposal: str
    status: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class AgentNote:
    """What an agent did, or said, about one outcome."""

    agent: str
    proposal: str
    status: str
    outcome: str
    by: str  # hook or driver
    at: float


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail that a server took."""

    recipient: str
    subject: str
    at: float


class PostLedger:
    """Rows of what was received; each is committed before the sender is answered."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(file, timeout=30, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")  # what a kill cannot take
        self._db.executescript(SCHEMA)

    def listen(self, listeners: Iterable[Listener]) -> None:
        """Before their servers start."""
        for one in listeners:
            self._write("INSERT INTO listener VALUES (?, ?, ?, ?, ?)", astuple(one))

    def listeners(self) -> list[Listener]:
        return self._all(Listener, "SELECT * FROM listener")

    def arrive(self, one: Arrival) -> tuple[int, int]:
        """Its line, and how many of the same id came before."""
        with self._lock, self._db as db:
            count = "SELECT count(*) FROM arrival WHERE message = ?"
            before = db.execute(count, [one.message]).fetchone()[0]
            line = db.execute(
                "INSERT INTO arrival VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                astuple(one),
            ).lastrowid
        return line or 0, before

    def answered(self, line: int, answer: str) -> None:
        self._write("UPDATE arrival SET answer = ? WHERE id = ?", (answer, line))

    def act(self, word: AgentNote) -> bool:
        """The agent's own work about an outcome, in one transaction with the outcome's
        name, as in client/examples/acts_once.py; whether it was news."""
        with self._lock, self._db as db:
            name = "INSERT OR IGNORE INTO taken VALUES (?)"
            news = bool(db.execute(name, [word.outcome]).rowcount)
            if news:
                db.execute("INSERT INTO work VALUES (?, ?, ?, ?, ?, ?)", astuple(word))
        return news

    def acknowledge(self, word: AgentNote) -> None:
        """The gate has answered 200 to the agent's word that it has this outcome."""
        self._write("INSERT INTO acknowledged VALUES (?, ?, ?, ?, ?, ?)", astuple(word))

    def mail(self, recipient: str, subject: str) -> None:
        values = (recipient, subject, time.time())
        self._write("INSERT INTO mail VALUES (?, ?, ?)", values)

    def arrivals(self) -> list[Arrival]:
        return self._all(
            Arrival,
            "SELECT at, agent, message, good, body, outcome, proposal, status, answer"
            " FROM arrival ORDER BY id",
        )

    def works(self) -> list[AgentNote]:
        return self._all(AgentNote, "SELECT * FROM work")

    def acknowledgements(self) -> list[AgentNote]:
        return self._all(AgentNote, "SELECT * FROM acknowledged")

    def mails(self) -> list[Mail]:
        return self._all(Mail, "SELECT * FROM mail")

    def close(self) -> None:
        self._db.close()

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        with self._lock, self._db as db:
            db.execute(statement, values)

    def _all(self, row: type[Row], query: str) -> list[Row]:
        with self._lock:
            return [row(*values) for values in self._db.execute(query)]


# Of a thousand first webhooks of an id, how many end so; each bound is above the last.
REFUSED, ASKED_TO_WAIT, LOST, UNSAID, LATE = 30, 45, 60, 75, 90
TWICE = 5  # of those refused
LATE_S = 1.3  # more than the gate waits
RETRY_AFTER_S = "1"
QUICK = Backoff(attempts=2, first=0.05, longest=0.1, patience=1.0)


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, or None for no answer at all; and what is said beside it."""

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def said(self) -> str:
        return "nothing" if self.status is None else str(self.status)


class WebhookReceiver:
    """The agents' servers, in one process, for any number of threads."""

    def __init__(self, book: PostLedger) -> None:
        self._book = book
        self._listeners = {one.agent: one for one in book.listeners()}

    def hear(self, agent: str, headers: Mapping[str, str], raw: bytes) -> Answer:
        """One webhook: it is written down first, then acted on, then answered."""
        listener, at = self._listeners.get(agent), time.time()
        if listener is None:
            return Answer(404)
        try:
            event = webhooks.verify(headers, raw, listener.secret)
        except webhooks.NotVerified:
            event = None
        line, before = self._book.arrive(_arrival(at, agent, headers, raw, event))
        answer = Answer(401)
        if event is not None:
            answer = self._answer(listener, event, before)
        self._book.answered(line, answer.said)
        return answer

    def _answer(self, to: Listener, event: webhooks.Event, before: int) -> Answer:
        mishap = _mishap(event.id, before)
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
        word = AgentNote(
            to.agent, event.proposal, event.status, event.outcome, "hook", time.time()
        )
        self._book.act(word)
        if to.says == "answer":
            return True
        if not _told(to, event):
            return False
        self._book.acknowledge(replace(word, at=time.time()))
        return True


def _told(to: Listener, event: webhooks.Event) -> bool:
    """Whether one of the web processes took the agent's word."""
    for address in to.gate.split():
        http = httpx2.Client(trust_env=False, timeout=1)
        try:
            with Gate(address, to.key, backoff=QUICK, http=http) as gate:
                proposal = gate.get(event.proposal)
                found = proposal.model_copy(update={"outcome": event.outcome})
                gate.acknowledge(found)
        except CountersealError:
            continue
        return True
    return False


def _arrival(
    at: float,
    agent: str,
    headers: Mapping[str, str],
    raw: bytes,
    event: webhooks.Event | None,
) -> Arrival:
    message, body = headers.get("webhook-id", ""), hashlib.sha256(raw).hexdigest()
    if event is None:
        return Arrival(at, agent, message, False, body, "", "", "")
    about = event.outcome, event.proposal, event.status
    return Arrival(at, agent, message, True, body, *about)


def _mishap(message: str, before: int) -> str:
    """What goes wrong with a webhook; the same whenever it is run."""
    drawn = int(hashlib.sha256(message.encode()).hexdigest()[:8], 16) % 1000
    if before:
        return "refused" if before == 1 and drawn < TWICE else ""
    bounds = {
        REFUSED: "refused",
        ASKED_TO_WAIT: "asked to wait",
        LOST: "lost",
        UNSAID: "unsaid",
        LATE: "late",
    }
    return next((name for bound, name in bounds.items() if drawn < bound), "")


READY = b"220 chaos\r\n"
FINE = b"250 OK\r\n"
ANSWERS = {
    b"EHLO": b"250 chaos\r\n",
    b"DATA": b"354 Go on\r\n",
    b"QUIT": b"221 Bye\r\n",
}
KNOWN = {b"HELO", b"MAIL", b"RCPT", b"RSET", b"NOOP"}


class MailServer(socketserver.ThreadingTCPServer):
    """In a thread of its own, on a free port of the given address."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, book: PostLedger) -> None:
        super().__init__((host, 0), SmtpHandler)
        self.book = book

    @property
    def url(self) -> str:
        """As `MAIL_URL` wants it."""
        host, port = self.server_address[:2]
        return f"smtp://{host!s}:{port}"

    def open(self) -> None:
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Callers are killed here all the time."""


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
                recipients.append(_address(line))
            self.wfile.write(ANSWERS.get(verb) or _other(verb))
            if verb == b"QUIT":
                return
            if verb == b"DATA":
                self._keep(recipients)
                recipients = []

    def _keep(self, recipients: list[str]) -> None:
        """A mail that is cut off in the middle is none: nobody is told that it is."""
        raw = b""
        while (line := self.rfile.readline()) != b".\r\n":
            if not line:
                return
            raw += line.removeprefix(b".")
        subject = str(message_from_bytes(raw, policy=policy.default)["Subject"])
        for recipient in recipients:
            self.server.book.mail(recipient, subject)
        self.wfile.write(FINE)


def _other(verb: bytes) -> bytes:
    return FINE if verb in KNOWN else b"502 Not here\r\n"


def _address(line: bytes) -> str:
    """Of `RCPT TO:<rita@example.com>`."""
    return line.partition(b"<")[2].partition(b">")[0].decode()
