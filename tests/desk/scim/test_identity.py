"""SCIM: whose account it is. The provider renames nobody together with what the gate's
administrators let them do, and who comes back after a deletion begins anew."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from journal import clock
from journal.models import LogRecord
from policies import password_links, people, substitutes
from policies.choices import Role
from policies.models import (
    FederatedIdentity,
    Passkey,
    Person,
    ProvisionedPerson,
    Queue,
    RecoveryCode,
    Substitution,
    TotpDevice,
)
from reviews import locks
from reviews.administration import authority, provisioned_groups, provisioning
from reviews.administration.authority import Authority, Invitation
from tests.assurance.planting import reload
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.desk.scim.conftest import Call, patch
from tests.desk.scim.test_views import (
    BACK,
    ENDED,
    NINA,
    add_group,
    detail_of,
    may,
    path_of,
)

pytestmark = pytest.mark.django_db
WORK = 'emails[type eq "work"].value'


def rename(call: Call, person: Person, path: str, value: str) -> Any:
    sent = patch({"op": "replace", "path": path, "value": value})
    return call("PATCH", path_of(person), sent)


@pytest.mark.parametrize(
    ("path", "named"),
    [(WORK, "emails"), ("emails", "emails"), ("userName", "userName")],
)
def test_who_has_authority_of_the_gate_does_not_become_somebody_else(
    gate: Gate, call: Call, path: str, named: str
) -> None:
    wanted = Authority(Role.OWNER, frozenset(), None, "i@example.org")
    invitation = Invitation("ines", "Ines", "Example", wanted)
    authority.invite_person(invitation=invitation, reason="New.", by=gate.adam)
    invited = Person.objects.get(username="ines")
    for person in (gate.alma, gate.rita, gate.owen, gate.otto, invited):
        refused = rename(call, person, path, "eve@example.net")
        assert refused.status_code == 403
        assert detail_of(refused).startswith(f"{named}: may not change")
        assert "OIDC_GROUPS" in detail_of(refused)
        assert reload(person).email == person.email
        assert reload(person).username == person.username
    call("PATCH", path_of(gate.alma), ENDED)
    assert rename(call, gate.alma, path, "eve@example.net").status_code == 403
    both = patch(
        {"op": "replace", "path": path, "value": "eve@example.net"},
        {"op": "replace", "path": "active", "value": "False"},
    )
    assert call("PATCH", path_of(gate.rita), both).status_code == 200
    assert (reload(gate.rita).is_active, reload(gate.rita).email) == (
        False,
        gate.rita.email,
    )


def test_who_has_what_groups_give_may_be_renamed(gate: Gate, call: Call) -> None:
    call("POST", "/Users", NINA)
    nina = Person.objects.get(username="nina@example.org")
    assert rename(call, nina, "userName", "nina").status_code == 200
    add_group(call, "gate-money", nina)
    assert rename(call, nina, WORK, "n@example.org").status_code == 200
    mail = Queue.objects.filter(name="mail")
    people.admit_to_queues(nina, mail, by=people.build_actor(gate.adam))
    assert rename(call, nina, WORK, "nina@example.org").status_code == 403
    people.dismiss_from_queues(nina, mail, by=people.build_actor(gate.adam))
    assert rename(call, nina, WORK, "nina@example.org").status_code == 200
    assert reload(nina).email == "nina@example.org"


def test_a_deleted_person_comes_back_with_nothing(gate: Gate, call: Call) -> None:
    alma = gate.alma
    Passkey.objects.create(person=alma, name="key", credential=b"1", key=b"2")
    TotpDevice.objects.create(person=alma, secret=b"3")
    RecoveryCode.objects.create(person=alma, digest="4")
    FederatedIdentity.objects.create(person=alma, issuer="https://id", subject="alma")
    assert call("DELETE", path_of(alma)).status_code == 204
    assert may(alma) == (Role.OWNER, set())
    for model in (Passkey, TotpDevice, RecoveryCode, FederatedIdentity):
        assert not model.objects.filter(person=alma).exists()
    kinds = set(LogRecord.objects.values_list("kind", flat=True))
    assert {"person.factor_removed", "person.unfederated", "person.changed"} <= kinds
    call("DELETE", path_of(gate.sue))
    assert may(gate.sue) == (Role.OWNER, set())
    again = call("POST", "/Users", {**NINA, "userName": "ALMA"})
    assert (again.status_code, reload(alma).email) == (201, "nina@example.org")
    assert may(alma) == (Role.OWNER, set())
    assert not reload(alma).has_usable_password()


@pytest.mark.parametrize("active", [True, False])
def test_a_deleted_person_stands_in_for_nobody_and_nobody_for_them(
    gate: Gate, call: Call, active: bool
) -> None:
    """Also one who was deactivated before."""
    queue, other = Queue.objects.get(name="mail"), Queue.objects.get(name="money")
    now = clock.now()
    for person, substitute, of in (
        (gate.rita, gate.tom, queue),
        (gate.tom, gate.sue, other),
        (gate.rita, gate.sue, other),
    ):
        Substitution.objects.create(
            person=person,
            substitute=substitute,
            queue=of,
            began_at=now,
            until=now + timedelta(days=3),
        )
    Person.objects.filter(pk=gate.tom.pk).update(is_active=active)
    assert call("DELETE", path_of(gate.tom)).status_code == 204
    assert substitutes.list_substitutions(gate.tom) == []
    assert [row.substitute for row in substitutes.list_substitutions(gate.rita)] == [
        gate.sue
    ]
    ended = LogRecord.objects.filter(kind="substitution.ended")
    assert {record.data["person"] for record in ended} == {
        gate.rita.public_id,
        gate.tom.public_id,
    }


def test_who_is_resumed_by_the_provider_has_no_link(
    gate: Gate, call: Call, as_: SignIn
) -> None:
    path = f"/people/{gate.tom.public_id}/"
    call("PATCH", path_of(gate.tom), ENDED)
    assert 'data-testid="link-until"' not in as_("adam").get(path).content.decode()
    call("PATCH", path_of(gate.tom), BACK)
    assert reload(gate.tom).is_active
    assert not password_links.is_awaited(reload(gate.tom))
    assert 'data-testid="link-until"' not in as_("adam").get(path).content.decode()


def test_the_name_of_nobody_is_refused(gate: Gate, call: Call) -> None:
    made = call("POST", "/Users", {**NINA, "userName": "anonymoususer"})
    assert (made.status_code, "userName: may not be" in detail_of(made)) == (400, True)
    call("POST", "/Users", NINA)
    nina = Person.objects.get(username="nina@example.org")
    assert rename(call, nina, "userName", "AnonymousUser").status_code == 400


def test_who_is_deleted_before_the_lock_is_not_there(
    gate: Gate, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("PATCH", path_of(gate.rita), ENDED)
    lock = locks.lock_people

    def lock_later(pks: Any) -> list[Person]:
        ProvisionedPerson.objects.update(removed_at="2026-01-01T00:00Z")
        return lock(pks)

    monkeypatch.setattr(locks, "lock_people", lock_later)
    assert call("PATCH", path_of(gate.rita), BACK).status_code == 404
    named = [{"value": gate.rita.public_id}]
    group = call("POST", "/Groups", {"displayName": "gate-money", "members": named})
    assert (group.status_code, "no user" in detail_of(group)) == (400, True)
    assert not reload(gate.rita).is_active


def test_a_name_that_is_taken_meanwhile_is_a_conflict(
    gate: Gate, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("POST", "/Users", NINA)
    nina = Person.objects.get(username="nina@example.org")
    add_group(call, "gate-money")
    for module, check in (
        (provisioning, "_check_free"),
        (provisioned_groups, "_check_name"),
    ):  # as if the other one came after it
        monkeypatch.setattr(module, check, lambda *_: None)
    twin = {**NINA, "emails": [{"value": "other@example.org"}]}
    for answer in (
        rename(call, nina, "userName", "rita"),
        rename(call, nina, WORK, gate.rita.email),
        call("POST", "/Users", twin),
        call("POST", "/Users", {**NINA, "userName": "other"}),
        call("POST", "/Groups", {"displayName": "GATE-money"}),
    ):
        kind = json.loads(answer.content).get("scimType")
        assert (answer.status_code, kind) == (409, "uniqueness"), answer.content
