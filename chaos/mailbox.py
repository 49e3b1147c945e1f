"""A mail server that keeps who was written to about what: just so much of SMTP (RFC
5321) as Django's backend speaks. A mail is written down before its 250."""

from __future__ import annotations

import socketserver
import threading
from email import message_from_bytes, policy

from .receivers import Postbook

READY = b"220 chaos\r\n"
FINE = b"250 OK\r\n"
ANSWERS = {
    b"EHLO": b"250 chaos\r\n",
    b"DATA": b"354 Go on\r\n",
    b"QUIT": b"221 Bye\r\n",
}
KNOWN = {b"HELO", b"MAIL", b"RCPT", b"RSET", b"NOOP"}


class Mailbox(socketserver.ThreadingTCPServer):
    """In a thread of its own, on a free port of the given address."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, book: Postbook) -> None:
        super().__init__((host, 0), Conversation)
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


class Conversation(socketserver.StreamRequestHandler):
    """One caller; as many mails as it has."""

    server: Mailbox
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
