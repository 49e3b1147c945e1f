"""That a person is who they say, proved once more for one verdict (I16).

A proof is bound to request, version, bytes and verdict, is five minutes old at most and
good for one decision. Between a refusal and the next try it waits in the session, on
our side; whatever is not exactly right is no proof.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.contrib.auth import authenticate
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest

from journal.errors import Reauth
from policies.models import Person

from .choices import Verdict

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
