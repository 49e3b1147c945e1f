"""What the operations of a PATCH (RFC 7644, 3.5.2), and the body of a POST or PUT, make
of a person and of a group.

Providers differ: Entra writes `Replace` and "False", and sends keys with dots; Okta
sends an object without a path. Attributes that the gate does not have are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from journal.errors import InvalidInput
from reviews.administration.provisioned_groups import GroupState
from reviews.administration.provisioning import UserState

from .filters import MARK, normalise_path

OPS = ("add", "remove", "replace")
MOST_OPERATIONS = 1000
_PATH = re.compile(r"[A-Za-z$][\w:.$-]*(\[[^\[\]]*\])?(\.[\w$]+)?")
_ONE_MEMBER = re.compile(
    r'(?:urn:[\w:.]+:)?members\[\s*value\s+eq\s+"([^"\\]+)"\s*\]', re.IGNORECASE
)
# Of the addresses of a person the gate has one: the work address, or the primary one.
_WORK = re.compile(
    r'\[\s*(?:type\s+eq\s+"work"|primary\s+eq\s+"?true\b)', re.IGNORECASE
)
_FIELDS = {
    "username": "user_name",
    "externalid": "external_id",
    "name.givenname": "first_name",
    "name.familyname": "last_name",
}
_REQUIRED = {"username": "userName", "emails": "emails", "emails.value": "emails"}


def read_user(body: Any, before: UserState | None = None) -> UserState:
    """The person whom the body of a POST or PUT describes. What it leaves out stays as
    it is `before`. Raises InvalidInput."""
    sent = _check_object(body, "the body")
    state = before or UserState("", "")
    state = _merge_user(state, sent)
    if not state.user_name:
        raise _build_missing("userName")
    if not state.email and "@" in state.user_name:
        state = replace(state, email=state.user_name)
    if not (state.first_name or state.last_name):
        shown = _read_text(_read_field(sent, "displayname") or "", "displayName")
        first, _, last = shown.partition(" ")
        state = replace(state, first_name=first, last_name=last)
    return state


def patch_user(state: UserState, body: Any) -> UserState:
    """The person after the operations. Raises InvalidInput."""
    for op, path, value in _read_operations(body):
        if not path:
            state = _merge_user(state, _check_object(value, "value"))
        elif op == "remove":
            state = _remove_from_user(state, path)
        else:
            state = _set_in_user(state, path, value)
    return state


def read_group(body: Any, before: GroupState | None = None) -> GroupState:
    """The group that the body of a POST or PUT describes. Without `members` they stay
    as they are `before`. Raises InvalidInput."""
    state = _merge_group(before or GroupState(""), _check_object(body, "the body"))
    if not state.name:
        raise _build_missing("displayName")
    return state


def patch_group(state: GroupState, body: Any) -> GroupState:
    """The group after the operations. Raises InvalidInput."""
    for op, path, value in _read_operations(body):
        if single := _find_single_member(op, path):
            state = replace(state, members=state.members - {single})
        elif not path:
            state = _merge_group(state, _check_object(value, "value"), op=op)
        elif normalise_path(path) in {"members", "members.value"}:
            state = _patch_members(state, op, value)
        elif op == "remove" and normalise_path(path) == "displayname":
            raise _build_missing("displayName")
        else:
            sent = {path: "" if op == "remove" else value}
            state = _merge_group(state, sent, op=op)
    return state


def _merge_user(state: UserState, sent: Mapping[str, Any]) -> UserState:
    for key, value in sent.items():
        state = _set_in_user(state, key, value)
    return state


def _set_in_user(state: UserState, marked: str, value: Any) -> UserState:
    path = normalise_path(marked)
    if path == "active":
        return replace(state, active=_read_flag(value))
    if path in {"emails", "emails.value"}:
        if _is_other_address(marked):
            return state
        address = _read_email(value)
        return state if address is None else replace(state, email=address)
    if path == "name":
        parts = _check_object(value, "name")
        named = {f"name.{key}": part for key, part in parts.items()}
        return _merge_user(state, named)
    if path not in _FIELDS:
        return state
    text = _read_text(value, path)
    if path in _REQUIRED and not text:
        raise _build_missing(_REQUIRED[path])
    changed: dict[str, Any] = {_FIELDS[path]: text}
    return replace(state, **changed)


def _remove_from_user(state: UserState, marked: str) -> UserState:
    path = normalise_path(marked)
    if _is_other_address(marked):
        return state
    if path in _REQUIRED:
        raise _build_missing(_REQUIRED[path])
    if path == "active":
        return replace(state, active=False)
    if path == "name":
        return replace(state, first_name="", last_name="")
    return _set_in_user(state, path, "")


def _merge_group(
    state: GroupState, sent: Mapping[str, Any], op: str = "replace"
) -> GroupState:
    for key, value in sent.items():
        _find_single_member(op, key)
        path = normalise_path(key)
        if path == "displayname":
            name = _read_text(value, "displayName")
            if not name.strip():
                raise _build_missing("displayName")
            state = replace(state, name=name)
        elif path == "externalid":
            state = replace(state, external_id=_read_text(value, "externalId"))
        elif path == "members":
            state = _patch_members(state, op, value)
    return state


def _find_single_member(op: str, path: str) -> str:
    """The member whom an operation removes by a filter; empty for a path without one.
    Raises InvalidInput for another filter of members: it would change all of them."""
    if not MARK.search(path) or not normalise_path(path).startswith("members"):
        return ""
    single = _ONE_MEMBER.fullmatch(path)
    if single is None or op != "remove":  # guard: provisioned-member
        raise InvalidInput(
            'path: a filter of members must be members[value eq "id"], to remove one.'
            " Nothing was changed. Add members by the path members.",
            scim_type="invalidFilter",
        )
    return single[1]


def _is_other_address(path: str) -> bool:
    """Whether the path names an address that is neither the work address nor the
    primary one."""
    email = normalise_path(path).startswith("emails")
    return email and bool(MARK.search(path)) and not _WORK.search(path)


def _patch_members(state: GroupState, op: str, value: Any) -> GroupState:
    named = _read_members(value)
    if op == "add":
        members = state.members | named
    elif op == "replace":
        members = named
    else:  # all of them, where none is named
        members = state.members - named if value is not None else frozenset()
    return replace(state, members=members)


def _read_operations(body: Any) -> Iterator[tuple[str, str, Any]]:
    """Each operation as what it does, its path ("" for none) and its value."""
    operations = _read_field(_check_object(body, "the body"), "operations")
    if not isinstance(operations, list) or len(operations) > MOST_OPERATIONS:
        rule = f"must be a list of at most {MOST_OPERATIONS} operations"
        raise _build_syntax_error("Operations", rule)
    for each in operations:
        sent = _check_object(each, "Operations")
        op = str(_read_field(sent, "op")).lower()
        if op not in OPS:
            raise _build_syntax_error("op", f"must be one of {', '.join(OPS)}")
        path = _read_field(sent, "path") or ""
        if not isinstance(path, str) or (path and not _PATH.fullmatch(path)):
            raise InvalidInput(
                'path: must be an attribute, such as emails[type eq "work"].value.'
                " Nothing was changed.",
                scim_type="invalidPath",
            )
        if op == "remove" and not path:
            raise InvalidInput(
                "path: must say what to remove. Nothing was changed.",
                scim_type="noTarget",
            )
        yield op, path, _read_field(sent, "value")


def _read_flag(value: Any) -> bool:
    text = str(value).lower()
    if not isinstance(value, bool | str) or text not in {"true", "false"}:
        raise _build_value_error("active", "must be true or false")
    return text == "true"


def _read_email(value: Any) -> str | None:
    """The address: of a text, or of a list the primary one, the work address, or the
    first without a type. None where the list has other ones only."""
    if isinstance(value, str):
        return value.strip()
    values = value if isinstance(value, list) else [value]
    known = [_check_object(each, "emails") for each in values]
    if not known:
        raise _build_missing("emails")
    counting = [each for each in known if _rank(each)]
    if not counting:
        return None
    best = min(counting, key=_rank)
    return _read_text(_read_field(best, "value"), "emails").strip()


def _rank(address: Mapping[str, Any]) -> int:
    """Which address of a person counts first; 0 for one that never does."""
    kind = str(_read_field(address, "type") or "").lower()
    if _read_field(address, "primary") is True:
        return 1
    return {"work": 2, "": 3}.get(kind, 0)


def _read_members(value: Any) -> frozenset[str]:
    values = value if isinstance(value, list) else [value] if value else []
    return frozenset(
        _read_text(_read_field(_check_object(each, "members"), "value"), "members")
        for each in values
    )


def _read_text(value: Any, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _build_value_error(path, "must be a text")
    return value


def _read_field(sent: Mapping[str, Any], name: str) -> Any:
    """The member of this name, in any case (RFC 7643, 2.1)."""
    return next((value for key, value in sent.items() if key.lower() == name), None)


def _check_object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _build_syntax_error(path, "must be a JSON object")
    return value


def _build_missing(path: str) -> InvalidInput:
    return _build_value_error(path, "is required")


def _build_value_error(path: str, rule: str) -> InvalidInput:
    return InvalidInput(
        f"{path}: {rule}. Nothing was changed. Correct it and send it again."
    )


def _build_syntax_error(path: str, rule: str) -> InvalidInput:
    return InvalidInput(
        f"{path}: {rule}. Nothing was changed. Correct it and send it again.",
        scim_type="invalidSyntax",
    )
