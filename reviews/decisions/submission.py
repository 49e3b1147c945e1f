"""What a reviewer had on the screen: the signed token of a page, and the copy of the
page that is kept with the decision, to be shown again exactly (gate.md 8).

One verdict as a person said it: on which version and bytes, from which page.

That a person is who they say, proved once more for one verdict (I16).

A proof is bound to request, version, bytes and verdict, is five minutes old at most and
good for one decision. Between a refusal and the next try it waits in the session, on
our side; whatever is not exactly right is no proof.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import authenticate
from django.contrib.sessions.backends.base import SessionBase
from django.core import signing
from django.http import HttpRequest

from journal import log
from journal.errors import DigestMissing, DomainError, Reauth
from policies.models import Person
from reviews.choices import Verdict
from reviews.models import ApprovalRequest, Decision, Snapshot

SALT = "reviews.seen"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a page says of itself when it comes back: made by us, signed by us.

    `since` is the version that the person had read before this one, or 0. `warned` are
    the things that the person was told once already and may now insist on.
    """

    person: str
    request: str
    version: int
    action_hash: str
    digest: str
    rendered_at: datetime
    reading: int | None = None
    since: int = 0
    warned: tuple[str, ...] = ()

    def token(self) -> str:
        """For a hidden field of the page; bound to person, version and content."""
        plain = {**asdict(self), "rendered_at": self.rendered_at.isoformat()}
        return signing.dumps(plain, salt=SALT)

    def warning(self, of: str) -> Seen:
        """The same page, with one thing more that was said."""
        return replace(self, warned=tuple(dict.fromkeys([*self.warned, of])))

    def read_since(self, before: Seen) -> Seen:
        """The page before this one, where its regions are the very same bytes."""
        if before.digest != self.digest or not before.is_for(self.person, self.request):
            return self
        return replace(self, rendered_at=before.rendered_at, warned=before.warned)

    def took_ms(self, now: datetime) -> int:
        """How long it has been on the screen, in milliseconds."""
        took = now - self.rendered_at
        return max(round(took.total_seconds() * 1000), 0)

    def is_for(self, person: str, request: str) -> bool:
        return (self.person, self.request) == (person, request)


@dataclass(frozen=True, slots=True)
class Sight:
    """One page as it was made: its regions, and everything they were made from."""

    parts: tuple[str, ...]  # R1 to R3, R4, R5 and R6: in the order of the page
    inputs: Mapping[str, Any]
    template_version: str

    @property
    def html(self) -> str:
        return "".join(self.parts)

    @property
    def digest(self) -> str:
        return digest(self.html)


def read(token: str) -> Seen:
    """What a page's token says. Raises DigestMissing for none, and for one that is not
    ours."""
    try:
        plain = signing.loads(token, salt=SALT)
        at = datetime.fromisoformat(plain.pop("rendered_at"))
        warned = tuple(plain.pop("warned"))
        return Seen(rendered_at=at, warned=warned, **plain)
    except (signing.BadSignature, TypeError, KeyError, ValueError):
        raise DigestMissing from None


def read_or_none(token: str) -> Seen | None:
    """The same where a page without a token is only a page that says nothing."""
    try:
        return read(token)
    except DigestMissing:
        return None


def digest(html: str) -> str:
    """The view digest: of exactly the bytes of the regions."""
    return f"sha256:{hashlib.sha256(html.encode()).hexdigest()}"


def snapshot(decision: Decision, sight: Sight) -> Snapshot:
    """The row that keeps what was shown; to be written with its decision."""
    return Snapshot(
        decision=decision,
        html=zlib.compress(sight.html.encode(), 9),
        inputs=dict(sight.inputs),
        template_version=sight.template_version,
        digest=sight.digest,
    )


def shown(snapshot: Snapshot) -> str:
    """The stored page. Raises ValueError when it cannot be what was stored."""
    try:
        return zlib.decompress(bytes(snapshot.html)).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise ValueError("the stored page is damaged") from error


def digest_of_files(files: Iterable[tuple[str, bytes]]) -> str:
    """One digest over names and contents, in their order."""
    total = hashlib.sha256()
    for name, content in files:
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return f"sha256:{total.hexdigest()}"


GOOD_FOR = timedelta(minutes=5)
_KEY = "step_up"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a proof is for, and nothing else."""

    person: str
    request: str
    version: int
    action_hash: str
    verdict: Verdict

    @property
    def digest(self) -> str:
        text = "\0".join(str(value) for value in asdict(self).values())
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Proof:
    """How somebody proved to be themselves, when, and for what."""

    method: str
    at: datetime
    bound: str  # a `Bound.digest`

    def holds(self, bound: Bound, now: datetime) -> bool:
        """Whether it is a proof for this, now. A time to come is none."""
        return self.bound == bound.digest and self.at <= now <= self.at + GOOD_FOR


def prove(
    http: HttpRequest, person: Person, password: str, bound: Bound, now: datetime
) -> Proof | None:
    """The proof that a password gives; None for an empty one, which is no try.

    Wrong tries count for the login lockout, and who has no usable password has no
    right one. Raises Reauth.
    """
    if not password:
        return None
    found = authenticate(http, username=person.get_username(), password=password)
    if found is None or found.pk != person.pk:
        raise Reauth("That password is not right. Nothing has been decided yet.")
    return Proof("password", now, bound.digest)


def keep(session: SessionBase, proof: Proof) -> None:
    """Remember the newest proof until its decision is made; there is one place."""
    session[_KEY] = {**asdict(proof), "at": proof.at.isoformat()}


def kept(session: SessionBase, bound: Bound, now: datetime) -> Proof | None:
    """The proof that was kept for exactly this, while it is fresh."""
    try:
        plain = session[_KEY]
        proof = Proof(
            plain["method"], datetime.fromisoformat(plain["at"]), plain["bound"]
        )
    except (KeyError, TypeError, ValueError):
        return None
    return proof if proof.holds(bound, now) else None


def forget(session: SessionBase) -> None:
    """After the one decision it was good for."""
    session.pop(_KEY, None)


@dataclass(frozen=True, slots=True)
class Said:
    """A person's verdict with the version and bytes it was given on."""

    request_id: str
    person: Person
    verdict: Verdict
    version: int
    action_hash: str
    reason_code: str = ""
    reason: str = ""
    args: Mapping[str, Any] | None = None
    step_up: Proof | None = None  # that the person just proved to be themselves
    # The page that it was said on; None when a program said it, without any page.
    seen: Sight | None = None
    flags: tuple[str, ...] = ()
    took_ms: int | None = None  # from the page to the commit
    check: Mapping[str, Any] = field(default_factory=dict)  # question and answers
    # What the page itself has against it, once: raised when nothing else is wrong.
    objection: DomainError | None = None
    # Of a decision on many: {"batch", "digest", "position", "by", "view"}; empty when
    # alone.
    batch: Mapping[str, Any] = field(default_factory=dict)
    lease: str = ""  # the taking that the page knew of
    # Which reading of the business state was shown: 0 for the revision's own, None
    # where none was. What moved since is not decided on.
    reading: int | None = None
    pause: bool = False  # with a rejection: the run is paused as well

    @property
    def actor(self) -> log.Actor:
        return log.Actor("person", self.person.public_id)

    @property
    def commits(self) -> bool:
        """Whether the verdict lets something happen."""
        return self.verdict in {Verdict.APPROVE, Verdict.MODIFY}

    @property
    def bound(self) -> Bound:
        """What a proof of identity has to be for."""
        return Bound(
            self.person.public_id,
            self.request_id,
            self.version,
            self.action_hash,
            self.verdict,
        )

    @property
    def by(self) -> str:
        """Where it was said: only a page leaves a copy of what was shown."""
        return str(self.batch.get("by", "page" if self.seen is not None else "api"))

    @property
    def view(self) -> str:
        """The digest of that copy; of many there is one, kept with the first."""
        return self.seen.digest if self.seen else str(self.batch.get("view", ""))

    def is_stale(self, request: ApprovalRequest) -> bool:
        """Whether it was said on another version, or on other bytes."""
        meant = (self.version, self.action_hash)
        return meant != (request.version, request.action_hash)
