"""What the operations of a PATCH make of a person and of a group."""

from __future__ import annotations

from typing import Any

import pytest

from desk.scim import patching
from journal.errors import InvalidInput
from reviews.administration.provisioned_groups import GroupState
from reviews.administration.provisioning import UserState
from tests.desk.scim.conftest import patch

GROUP = GroupState("staff", members=frozenset({"u1", "u2"}))
NINA = UserState("nina", "nina@example.org")
HOME = {"value": "home@example.org", "type": "home"}


@pytest.mark.parametrize("op", ["add", "remove", "replace"])
@pytest.mark.parametrize(
    "path",
    [
        'members[value eq "u1" and type eq "User"]',
        'members[type eq "User"]',
        'members[value eq ""]',
        'members[value ne "u1"]',
        'members[value eq "u1"].display',
        'urn:ietf:params:scim:schemas:core:2.0:Group:members[type eq "User"]',
        "members[value eq\n]",
    ],
)
def test_only_one_member_is_named_by_a_filter(op: str, path: str) -> None:
    with pytest.raises(InvalidInput, match="a filter of members") as refused:
        patching.patch_group(GROUP, patch({"op": op, "path": path, "value": []}))
    assert refused.value.facts == {"scim_type": "invalidFilter"}


def test_a_member_named_by_a_filter_is_removed_and_nothing_else() -> None:
    one = 'members[value eq "u1"]'
    for path in (one, f"urn:ietf:params:scim:schemas:core:2.0:Group:{one}"):
        left = patching.patch_group(GROUP, patch({"op": "remove", "path": path}))
        assert left.members == {"u2"}
    for sent in (
        {"op": "replace", "path": one, "value": []},
        {"op": "add", "path": one, "value": [{"value": "u3"}]},
        {"op": "replace", "value": {one: []}},
    ):
        with pytest.raises(InvalidInput, match="a filter of members"):
            patching.patch_group(GROUP, patch(sent))


@pytest.mark.parametrize(
    "sent",
    [
        {"path": "displayName", "value": ""},
        {"path": "displayName", "value": " "},
        {"value": {"displayName": None}},
    ],
)
def test_a_group_is_never_without_a_name(sent: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="displayName: is required"):
        patching.patch_group(GROUP, patch({"op": "replace", **sent}))


@pytest.mark.parametrize(
    "sent",
    [
        {"op": "replace", "path": 'emails[type eq "home"].value', "value": "x@y.org"},
        {"op": "add", "path": "emails[primary eq false].value", "value": "x@y.org"},
        {"op": "remove", "path": 'emails[type eq "home"]'},
        {"op": "replace", "value": {'emails[type eq "home"].value': "x@y.org"}},
        {"op": "replace", "path": "emails", "value": [HOME]},
    ],
)
def test_another_address_does_not_become_the_work_address(sent: dict[str, Any]) -> None:
    assert patching.patch_user(NINA, patch(sent)) == NINA


def test_the_work_address_counts_and_before_it_the_primary_one() -> None:
    work = {"value": "work@example.org", "type": "Work"}
    first = {"value": "first@example.org", "type": "other", "primary": True}
    for sent, wanted in (([HOME, work], work), ([HOME, work, first], first)):
        body = {"userName": "nina", "emails": sent}
        assert patching.read_user(body).email == wanted["value"]
    for mark in ('type eq "work"', "primary eq true", 'primary eq "True"'):
        one = {"op": "replace", "path": f"emails[{mark}].value", "value": "new@y.org"}
        assert patching.patch_user(NINA, patch(one)).email == "new@y.org"
