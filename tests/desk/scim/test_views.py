"""SCIM: what the provider's calls do to people, their groups and what they may do."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.test import Client

from agents import keys
from journal.models import LogRecord
from policies.choices import Role
from policies.models import Person, ProvisionedGroup, ProvisioningToken
from reviews.administration import accounts, authority, provisioning_tokens
from reviews.administration.authority import load_authority
from reviews.models import AuthorityChange, Stop
from reviews.people import tokens
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.desk.scim.conftest import Call, patch
from tests.factories import decide, propose

pytestmark = pytest.mark.django_db
NINA = {
    "userName": "nina@example.org",
    "name": {"givenName": "Nina", "familyName": "Example"},
    "emails": [{"value": "nina@example.org", "primary": True}],
    "active": True,
}
ENDED = patch({"op": "Replace", "path": "active", "value": "False"})
BACK = patch({"op": "replace", "value": {"active": True}})


def path_of(person: Person) -> str:
    return f"/Users/{person.public_id}"


def add_group(call: Call, name: str, *members: Person) -> str:
    named = [{"value": person.public_id} for person in members]
    answer = call("POST", "/Groups", {"displayName": name, "members": named})
    assert answer.status_code == 201, answer.content
    return f"/Groups/{json.loads(answer.content)['id']}"


def detail_of(answer: Any) -> str:
    return str(json.loads(answer.content)["detail"])


def may(person: Person) -> tuple[Role, set[str]]:
    now = load_authority(Person.objects.get(pk=person.pk))
    return now.role, set(now.queues)


def test_a_new_person_may_do_nothing_until_a_group_says_so(
    gate: Gate, call: Call
) -> None:
    assert call("POST", "/Users", NINA).status_code == 201
    nina = Person.objects.get(username="nina@example.org")
    assert nina.is_active
    assert not nina.has_usable_password()
    assert may(nina) == (Role.OWNER, set())
    money = add_group(call, "gate-money", nina)
    assert may(nina) == (Role.REVIEWER, {"money"})
    mail = add_group(call, "gate-mail", nina)
    assert may(nina) == (Role.REVIEWER, {"money", "mail"})
    supervisors = add_group(call, "gate-supervisors", nina)
    assert may(nina) == (Role.SUPERVISOR, {"money"})
    call("DELETE", supervisors)
    out = {"op": "remove", "path": f'members[value eq "{nina.public_id}"]'}
    assert call("PATCH", mail, patch(out)).status_code == 204
    assert may(nina) == (Role.REVIEWER, {"money"})
    rename = {"op": "replace", "value": {"displayName": "elsewhere"}}
    assert call("PATCH", money, patch(rename)).status_code == 204
    assert may(nina) == (Role.OWNER, set())
    row = ProvisioningToken.objects.get()
    actors = LogRecord.objects.filter(kind__startswith="person.").order_by("id")
    assert {(one.actor_kind, one.actor_id) for one in actors} == {
        ("system", f"provider:{row.prefix}")
    }
    assert LogRecord.objects.filter(kind="provisioning.group_changed").count() == 2


def test_a_group_that_means_nothing_changes_nobody(gate: Gate, call: Call) -> None:
    before = may(gate.rita)
    staff = add_group(call, "all-staff", gate.rita)
    call("DELETE", staff)
    assert may(gate.rita) == before


def test_who_is_deactivated_is_out_at_once(gate: Gate, call: Call, as_: SignIn) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    session, text = as_("sue"), tokens.create_token(person=gate.sue, name="script")
    api = Client(headers={"authorization": f"Bearer {text}"})
    assert session.get("/queue/").status_code == 200
    assert api.get("/api/v1/requests").status_code == 200
    assert call("PATCH", path_of(gate.sue), ENDED).status_code == 200
    assert session.get("/queue/").status_code == 302
    assert api.get("/api/v1/requests").status_code == 401
    stop = Stop.objects.get(scope="reviewer", key=gate.sue.public_id)
    assert stop.reason == "Their account was deactivated."
    shown = as_("otto").get("/log/").content.decode()
    assert "The identity provider" in shown
    assert f"<b>{gate.sue}</b>" in shown
    assert call("PATCH", path_of(gate.sue), BACK).status_code == 200
    assert not Person.objects.get(pk=gate.sue.pk).has_usable_password()


@pytest.mark.parametrize("value", ["rita", "TOM", "not an address"])
def test_an_account_ends_whatever_else_is_wrong(
    gate: Gate, call: Call, value: str
) -> None:
    wrong = {"op": "replace", "path": "emails", "value": value}
    ends = {"op": "replace", "path": "active", "value": False}
    assert call("PATCH", path_of(gate.sue), patch(wrong, ends)).status_code == 200
    sue = Person.objects.get(pk=gate.sue.pk)
    assert (sue.is_active, sue.email) == (False, gate.sue.email)


def test_it_lets_nobody_in_whom_the_gate_keeps_out(gate: Gate, call: Call) -> None:
    call("PATCH", path_of(gate.rita), ENDED)
    call("PATCH", path_of(gate.rita), BACK)
    rita = Person.objects.get(pk=gate.rita.pk)
    accounts.deactivate_account(person=rita, by=gate.adam)
    wanted = authority.Authority(Role.REVIEWER, frozenset(), None, "i@example.org")
    invitation = authority.Invitation("ines", "Ines", "Example", wanted)
    authority.invite_person(invitation=invitation, reason="New.", by=gate.adam)
    for person in (rita, AuthorityChange.objects.get().person):
        for body in (BACK, patch({"op": "add", "path": "active", "value": "True"})):
            refused = call("PATCH", path_of(person), body)
            assert refused.status_code == 403
            assert "Two administrators" in detail_of(refused)
        assert not Person.objects.get(pk=person.pk).is_active


def test_a_deleted_person_comes_back_without_their_groups(
    gate: Gate, call: Call
) -> None:
    call("POST", "/Users", NINA)
    nina = Person.objects.get(username="nina@example.org")
    add_group(call, "gate-money", nina)
    assert call("DELETE", path_of(nina)).status_code == 204
    assert call("PATCH", path_of(nina), BACK).status_code == 404
    found = call("GET", '/Users?filter=userName eq "nina@example.org"')
    assert json.loads(found.content)["totalResults"] == 0
    again = call("POST", "/Users", {**NINA, "userName": "NINA@example.org"})
    assert json.loads(again.content)["id"] == nina.public_id
    assert Person.objects.get(pk=nina.pk).is_active
    assert may(nina) == (Role.OWNER, set())


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind", "says"),
    [
        ("POST", "/Users", {"userName": "a b"}, 400, "invalidValue", "userName: may"),
        ("POST", "/Users", {"emails": []}, 400, "invalidValue", "emails: is required"),
        ("POST", "/Users", {**NINA, "active": 1}, 400, "invalidValue", "active: must"),
        ("POST", "/Users", [], 400, "invalidSyntax", "the body: must be"),
        ("POST", "/Users", {**NINA, "userName": "RITA"}, 409, "uniqueness", "userName"),
        (
            "POST",
            "/Users",
            {**NINA, "emails": [{"value": "SUE@example.com"}]},
            409,
            "uniqueness",
            "emails: another account",
        ),
        ("POST", "/Users", {**NINA, "externalId": "x" * 256}, 400, "", "externalId"),
        ("GET", '/Users?filter=userName sw "a"', None, 400, "invalidFilter", "by eq"),
        ("GET", '/Users?filter=userName eq "\\q"', None, 400, "invalidFilter", "by eq"),
        ("GET", '/Users?filter=title eq "a"', None, 400, "invalidFilter", "by eq"),
        ("GET", "/Users?count=many", None, 400, "invalidValue", "count: must"),
        ("GET", "/Users/u-404", None, 404, "", "No user has the id u-404"),
        ("GET", "/Roles", None, 404, "", "not found"),
        ("PATCH", "/Users", None, 405, "", "Use GET, HEAD, POST"),
        ("PATCH", "RITA", {}, 400, "invalidSyntax", "Operations: must"),
        ("PATCH", "RITA", patch({"op": "move"}), 400, "invalidSyntax", "op: must"),
        ("PATCH", "RITA", patch({"op": "remove"}), 400, "noTarget", "path: must"),
        (
            "PATCH",
            "RITA",
            patch({"op": "add", "path": "emails[", "value": "x"}),
            400,
            "invalidPath",
            "path: must",
        ),
        (
            "PATCH",
            "RITA",
            patch({"op": "remove", "path": "userName"}),
            400,
            "invalidValue",
            "userName: is required",
        ),
        ("POST", "/Groups", {}, 400, "invalidValue", "displayName: is required"),
        (
            "POST",
            "/Groups",
            {"displayName": "g", "members": [{"value": "u-404"}]},
            400,
            "invalidValue",
            "members: no user has the id u-404",
        ),
    ],
)
def test_a_refusal_names_the_attribute_and_the_rule(
    gate: Gate,
    call: Call,
    method: str,
    path: str,
    body: Any,
    status: int,
    kind: str,
    says: str,
) -> None:
    answer = call(method, path_of(gate.rita) if path == "RITA" else path, body)
    error = json.loads(answer.content)
    assert error["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert (answer.status_code, error["status"]) == (status, str(status)), error
    assert error.get("scimType", "").startswith(kind)
    assert says in error["detail"]
    assert not ProvisionedGroup.objects.exists()
    assert not LogRecord.objects.filter(kind__startswith="person.").exists()


def test_a_second_group_of_the_name_is_refused(gate: Gate, call: Call) -> None:
    add_group(call, "gate-money")
    twin = call("POST", "/Groups", {"displayName": "GATE-money"})
    assert (twin.status_code, "another group" in detail_of(twin)) == (409, True)


def test_only_a_confirmed_token_counts(
    gate: Gate, call: Call, as_: SignIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    waits = provisioning_tokens.make_token(reason="Rotation.", by=gate.adam)
    row = ProvisioningToken.objects.exclude(confirmed_at__isnull=False).get()
    others = [
        waits,
        f"{waits[:-1]}!",
        keys.issue_key(agent=gate.agent, by=gate.owen),
        tokens.create_token(person=gate.adam, name="script"),
        "",
    ]
    for text in others:
        refused = call("GET", "/Users", bearer=text)
        assert refused.status_code == 401
        assert refused["WWW-Authenticate"] == "Bearer"
    assert as_("adam").get("/scim/v2/Users").status_code == 401
    provisioning_tokens.confirm_token(token_id=row.pk, by=gate.alma)
    assert call("GET", "/Users", bearer=waits).status_code == 200
    assert call("GET", "/Users").status_code == 200  # the former one, too
    assert ProvisioningToken.objects.filter(last_used_at__isnull=False).count() == 2
    provisioning_tokens.revoke_token(token_id=row.pk, by=gate.adam)
    assert call("GET", "/Users", bearer=waits).status_code == 401
    assert waits.rpartition("_")[2] not in caplog.text


def test_the_list_goes_by_pages(gate: Gate, call: Call) -> None:
    whole = json.loads(call("GET", "/Users").content)
    second = json.loads(call("GET", "/Users?startIndex=2&count=1").content)
    assert second["Resources"] == whole["Resources"][1:2]
    assert second["totalResults"] == whole["totalResults"] == len(gate.people)
    none = json.loads(call("GET", "/Users?count=0&attributes=userName").content)
    assert (none["Resources"], none["itemsPerPage"]) == ([], 0)
    for name in ("ServiceProviderConfig", "ResourceTypes/User"):
        assert call("GET", f"/{name}").status_code == 200
    assert call("GET", "/Schemas/urn:nothing").status_code == 404
