"""What a reviewer had on the screen: the signed token of a page, and the copy of the
page that is kept with the decision, to be shown again exactly (gate.md 8)."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.core import signing

from journal.errors import DigestMissing
from reviews.models import Decision, Snapshot

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
