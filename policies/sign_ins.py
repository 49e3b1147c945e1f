"""The sessions that people began in browsers: a list from which they, or an
administrator, end one. A session ends twelve hours after its sign-in, however busy it
is (SESSION_COOKIE_AGE)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.core.validators import validate_ipv46_address
from django.db.models import Exists, OuterRef
from django.http import HttpRequest

from journal import clock, log
from journal.operations import operation

from . import people
from .models import Person, SignIn

SEEN_EVERY = timedelta(minutes=5)
LONGEST_BROWSER = 300
_MOST_SEEN = 10_000
# By session key, when this process last wrote down that the session is in use.
_seen: OrderedDict[str, datetime] = OrderedDict()


def record_sign_in(
    sender: object, request: HttpRequest, user: Person, **more: Any
) -> None:
    """List the session that a sign-in began, and let it end at its time. The receiver
    of Django's `user_logged_in`."""
    now, session = clock.now(), request.session
    session.set_expiry(now + timedelta(seconds=settings.SESSION_COOKIE_AGE))
    if session.session_key is None:
        session.save()
    key = str(session.session_key)
    values = {
        "person": user,
        "began_at": now,
        "seen_at": now,
        "address": _read_address(request),
        "browser": request.META.get("HTTP_USER_AGENT", "")[:LONGEST_BROWSER],
    }
    SignIn.objects.update_or_create(session_key=key, defaults=values)
    _remember(key, now)


def mark_seen(session_key: str, now: datetime) -> None:
    """Write down that the session is in use, at most every five minutes."""
    last = _seen.get(session_key)
    if last is not None and now < last + SEEN_EVERY:
        return
    SignIn.objects.filter(session_key=session_key).update(seen_at=now)
    _remember(session_key, now)


def follow_key(before: str, after: str) -> None:
    """The session goes on under another key."""
    SignIn.objects.filter(session_key=before).update(session_key=after)


def rotate_key(request: HttpRequest) -> None:
    """Let the session go on under a new key, after the person proved who they are: who
    knew the old key has nothing."""
    before = request.session.session_key
    if before is None:
        return
    request.session.cycle_key()
    follow_key(before, str(request.session.session_key))


def spend_key(request: HttpRequest) -> bool:
    """Rotate the key, for one request alone: False where another request with the same
    key was first. What the session holds for one use thus serves one."""
    key = request.session.session_key
    ended, _ = Session.objects.filter(session_key=key).delete()
    if not ended:
        return False
    rotate_key(request)
    return True


def list_sign_ins(person: Person) -> Sequence[SignIn]:
    """The person's sessions that have not ended, the one used last first. A new
    password and a deactivation end sessions whose rows stay."""
    rows = SignIn.objects.filter(person=person)
    sessions = Session.objects.filter(
        session_key__in=rows.values("session_key"), expire_date__gt=clock.now()
    )
    hashes = {person.get_session_auth_hash(), *person.get_session_auth_fallback_hash()}
    alive = {
        session.session_key
        for session in (sessions if person.is_active else ())
        if session.get_decoded().get(HASH_SESSION_KEY) in hashes
    }
    return [row for row in rows if row.session_key in alive]


@operation(writes="SignIn, Session", logs="person.sessions_ended", after="wake-up")
def end_sign_ins(
    person: Person,
    *,
    by: Person,
    only: int | None = None,
    keep: str = "",
    reason: str = "",
) -> int:
    """End the person's sessions, or `only` the one of this id; not the one with the key
    `keep`. Returns how many ended. Raises NotPermitted for anybody but the person and
    administrators."""
    if by.pk != person.pk:
        people.check_administrator(by)
    alive = {row.pk for row in list_sign_ins(person)}
    rows = SignIn.objects.filter(person=person).exclude(session_key=keep)
    if only is not None:
        rows = rows.filter(pk=only)
    keys = dict(rows.values_list("session_key", "pk"))
    Session.objects.filter(session_key__in=keys).delete()
    SignIn.objects.filter(session_key__in=keys).delete()
    ended = len(alive & {*keys.values()})
    if ended:
        log.append(
            "person.sessions_ended",
            actor=people.build_actor(by),
            at=clock.now(),
            data={"person": person.public_id, "count": str(ended)},
            private={"reason": reason} if reason else None,
        )
    return ended


def delete_ended(most: int) -> int:
    """Delete up to `most` rows whose session is gone; return how many."""
    alive = Session.objects.filter(session_key=OuterRef("session_key"))
    rows = SignIn.objects.filter(~Exists(alive)).order_by("pk")
    pks = list(rows.values_list("pk", flat=True)[:most])
    return SignIn.objects.filter(pk__in=pks).delete()[0]


def _remember(key: str, now: datetime) -> None:
    _seen[key] = now
    _seen.move_to_end(key)
    while len(_seen) > _MOST_SEEN:
        _seen.popitem(last=False)


def _read_address(request: HttpRequest) -> str | None:
    address = request.META.get("REMOTE_ADDR", "")
    try:
        validate_ipv46_address(address)
    except ValidationError:
        return None
    return str(address)
