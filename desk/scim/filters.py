"""Filters of SCIM (RFC 7644, 3.4.2.2), as far as providers send them: `eq`, joined by
`and`. Whoever sends another one is told so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from django.db.models import Q

from journal.errors import InvalidInput

# An attribute, also of a value with a type: emails[type eq "work"].value
_ATTRIBUTE = r'[A-Za-z$][\w:.$-]*(?:\[\s*[\w.]+\s+eq\s+(?:"[^"\\]*"|true)\s*\])?[\w.]*'
_TEXT = r'"(?:[^"\\]|\\.)*+"'
_COMPARISON = re.compile(
    rf"\s*({_ATTRIBUTE})\s+eq\s+({_TEXT}|true|false)\s*(?:(and)\s|$)", re.IGNORECASE
)
_CORE = re.compile(r"urn:ietf:params:scim:schemas:core:2\.0:\w+:", re.IGNORECASE)
MARK = re.compile(r"\[.*\]", re.DOTALL)
LONGEST_FILTER = 1000

Condition = Callable[[str], Q]
OF_USERS: Mapping[str, Condition] = {
    "username": lambda text: Q(username__iexact=text),
    "externalid": lambda text: Q(provisioned__external_id=text),
    "id": lambda text: Q(public_id=text),
    "active": lambda text: Q(is_active=text == "true"),
    "emails": lambda text: Q(email__iexact=text),
    "emails.value": lambda text: Q(email__iexact=text),
}
OF_GROUPS: Mapping[str, Condition] = {
    "displayname": lambda text: Q(name__iexact=text),
    "externalid": lambda text: Q(external_id=text),
    "id": lambda text: Q(public_id=text),
    "members": lambda text: Q(members__person__public_id=text),
    "members.value": lambda text: Q(members__person__public_id=text),
}


def parse_filter(text: str, conditions: Mapping[str, Condition]) -> Q:
    """The condition that a filter states. Raises InvalidInput for what is no filter of
    these attributes."""
    whole, at, joined = Q(), 0, True
    if len(text) > LONGEST_FILTER:
        raise build_filter_error(conditions)
    while joined:
        part = _COMPARISON.match(text, at)
        condition = conditions.get(normalise_path(part[1])) if part else None
        if part is None or condition is None:
            raise build_filter_error(conditions)
        value = _read_value(part[2])
        if value is None:
            raise build_filter_error(conditions)
        whole &= condition(value)
        at, joined = part.end(), bool(part[3])
    return whole


def normalise_path(path: str) -> str:
    """An attribute in lower case, without its schema and without which value is meant:
    a person has one mail address here."""
    return MARK.sub("", _CORE.sub("", path)).lower()


def _read_value(text: str) -> str | None:
    """The value; None for a text that is no JSON or that nothing can have."""
    if not text.startswith('"'):
        return text.lower()
    try:
        value: str = json.loads(text, strict=False)
        value.encode()
    except ValueError:  # an unknown escape, or half of a surrogate pair
        return None
    return None if "\x00" in value else value


def build_filter_error(conditions: Mapping[str, Condition]) -> InvalidInput:
    known = ", ".join(sorted(conditions))
    return InvalidInput(
        f'filter: must compare by eq, such as {next(iter(conditions))} eq "value",'
        f" one of {known}; several are joined by and. Nothing was read.",
        scim_type="invalidFilter",
    )
