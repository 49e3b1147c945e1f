"""The check values of the installation's keys: the database knows which keys it was
written with, and a process with another one does not start.

A check value is the public id of a key. A process may start with a new key if it also
has the present one among its other keys; the new one is then the present one. A key
that signs may replace one that nobody keeps, once somebody says so (`accept_key`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from . import clock
from .encryption import identify_key
from .models import KnownKey
from .operations import operation

# Nothing in the database needs the keys that only sign, so that after a leak nobody
# keeps the former one; and the command that makes a new one count without it.
SIGNING = {
    "GRANT_KEY": "counterseal keys accept GRANT_KEY",
    "SECRET_KEY": "counterseal keys accept SECRET_KEY",
}
_LOCK = "LOCK TABLE journal_knownkey IN SHARE ROW EXCLUSIVE MODE"


@dataclass(frozen=True, slots=True)
class KeyRing:
    """One key of the settings: its variable, the key that is used, the variable of the
    others, and these."""

    name: str
    present: bytes
    others_name: str
    others: tuple[bytes, ...]

    def list_ids(self) -> list[str]:
        """The ids of all its keys, the present one first."""
        return [format_id(key) for key in (self.present, *self.others)]


def format_id(key: bytes) -> str:
    """The id of a key as people read it."""
    return identify_key(key).hex()


def list_rings() -> Iterator[KeyRing]:
    """The keys that every process of an installation must have in common."""
    here = settings.COUNTERSEAL
    read: Mapping[str, Callable[[Any], bytes]] = {"SECRET_KEY": str.encode}
    for name, others in (
        ("DATA_KEY", ["DATA_KEYS_RETIRED"]),
        ("TAG_KEY", ["TAG_KEYS_RETIRED"]),
        ("GRANT_KEY", ["GRANT_KEYS_RETIRED", "GRANT_KEYS_NEXT"]),
        ("SECRET_KEY", ["SECRET_KEY_FALLBACKS"]),
    ):
        as_bytes = read.get(name, bytes)
        former = [as_bytes(k) for other in others for k in getattr(here, other.lower())]
        key = as_bytes(getattr(here, name.lower()))
        yield KeyRing(name, key, others[0], tuple(former))


@operation(locks="known keys (the table)", writes="KnownKey")
def check_keys() -> list[str]:
    """Compare this process's keys with the database's, and record those that it is the
    first to use. A host that has not turned yet changes nothing. Returns one line for
    each former key that the database may still need and this process does not have.

    *Raises* ImproperlyConfigured, with one line for each wrong key; nothing is
    recorded then.
    """
    _lock_table()
    rings = list(list_rings())
    # guard: known-keys
    if faults := [text for ring in rings if (text := _find_fault(ring))]:
        raise ImproperlyConfigured("\n".join(faults))
    for ring in rings:
        KnownKey.objects.get_or_create(
            name=ring.name,
            key_id=format_id(ring.present),
            defaults={"used_at": clock.now()},
        )
    return [line for ring in rings for line in _list_missing(ring)]


@operation(locks="known keys (the table)", writes="KnownKey")
def confirm_keys() -> None:
    """Make this process's keys the present ones, where its former ones were turned away
    from and come back."""
    _lock_table()
    for ring in list_rings():
        _make_present(ring)


@operation(locks="known keys (the table)", writes="KnownKey")
def accept_key(name: str) -> str:
    """Make this process's key the present one, although the process does not have the
    former one; for a key of `SIGNING`. From now on processes with the former one do not
    start. Returns the key's id."""
    _lock_table()
    ring = next(ring for ring in list_rings() if ring.name == name)
    _make_present(ring)
    return format_id(ring.present)


def _lock_table() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_LOCK)


def _make_present(ring: KeyRing) -> None:
    key_id = format_id(ring.present)
    if _find_present(ring.name) != key_id:
        KnownKey.objects.update_or_create(
            name=ring.name, key_id=key_id, defaults={"used_at": clock.now()}
        )


def list_uses(name: str) -> list[tuple[str, datetime]]:
    """The id of each key of this name and when a process first used it, oldest
    first."""
    rows = KnownKey.objects.filter(name=name).order_by("used_at", "pk")
    return list(rows.values_list("key_id", "used_at"))


def find_key_at(name: str, at: datetime) -> str | None:
    """The id of the key that was in use at this time; None when none is known."""
    uses = list_uses(name)
    began = [key_id for key_id, used_at in uses if used_at <= at]
    return began[-1] if began else next((key_id for key_id, _ in uses), None)


@operation(locks="known keys (the table)", writes="KnownKey (deleted)")
def forget_key(name: str, key_id: str) -> None:
    """Forget a former key that nothing needs any more."""
    _lock_table()
    if _find_present(name) != key_id:
        KnownKey.objects.filter(name=name, key_id=key_id).delete()


def _find_present(name: str) -> str | None:
    newest = KnownKey.objects.filter(name=name).order_by("-used_at", "-pk")
    return newest.values_list("key_id", flat=True).first()


def _find_fault(ring: KeyRing) -> str:
    present, ids = _find_present(ring.name), ring.list_ids()
    if present is None or present in ids:
        return ""
    accept = SIGNING.get(ring.name)
    return (
        f"{ring.name}: this installation uses the key {present}, and this process has"
        f" {ids[0]}: set {ring.name} to the installation's key or, to"
        f" replace it on purpose, put the former key into {ring.others_name}"
        f"{f' (after a leak: run `{accept}`)' if accept else ''}; see docs/keys.md"
    )


def _list_missing(ring: KeyRing) -> Iterator[str]:
    """Of keys whose absence makes stored values unreadable."""
    if ring.name != "DATA_KEY":
        return
    known = KnownKey.objects.filter(name=ring.name).exclude(key_id__in=ring.list_ids())
    for key_id in known.values_list("key_id", flat=True):
        yield (
            f"{ring.name}: values may still need the former key {key_id}, which is not"
            f" in {ring.others_name}: put it there and run `counterseal keys rotate`"
        )
