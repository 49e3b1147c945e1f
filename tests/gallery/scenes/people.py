"""People: the list, an invitation, what waits for a second administrator, a link."""

from __future__ import annotations

from dataclasses import replace

from journal import clock
from policies import money, password_links, versions
from policies.choices import Role
from policies.models import (
    Passkey,
    Person,
    ProvisionedGroup,
    ProvisionedMember,
    ProvisioningToken,
)
from reviews.administration import authority, provisioning_tokens
from reviews.administration.authority import Authority, Invitation
from tests.factories import PASSWORD
from tests.gallery.scene import SceneGroup, Submission
from tests.gallery.scenes.policies import save_with_passkeys
from tests.gallery.store import StoreGate
from tests.policies.security_key import give_key

PEOPLE = SceneGroup(
    "people",
    shows=(
        "reviews:people",
        "reviews:invite",
        "reviews:person",
        "reviews:password_link",
        "reviews:own_password",
        "reviews:queues",
        "reviews:past_queue",
        "reviews:provisioning",
    ),
)


@PEOPLE.preparation
def invite_ines(gate: StoreGate) -> None:
    """An invitation, and a wider ceiling, that wait."""
    wanted = Authority(
        Role.REVIEWER,
        frozenset({"refunds"}),
        money.parse("500.00", "USD"),
        "ines@example.org",
    )
    invitation = Invitation("ines", "Ines", "Carvalho", wanted)
    authority.invite_person(
        invitation=invitation, reason="Starts on Monday.", by=gate.adam
    )
    rita = Person.objects.get(pk=gate.rita.pk)
    authority.change_authority(
        person=rita,
        wanted=replace(authority.load_authority(rita), role=Role.SUPERVISOR),
        reason="Sam leaves.",
        by=gate.adam,
    )


def find_path(username: str) -> str:
    return f"/people/{Person.objects.get(username=username).public_id}/"


PEOPLE.add("list", "Waits for a second administrator", "/people/", "alma")
PEOPLE.add("list-auditor", "Who decides what", "/people/", "otto")
PEOPLE.add("queues", "Who decides in each", "/queues/", "alma")
PEOPLE.add(
    "queue-past-early",
    "The log begins",
    "/queues/refunds/past/?at=2020-11-01T10:00",
    "otto",
)


@PEOPLE.scene("queue-past", "Could decide", "otto")
def queue_past(gate: StoreGate) -> str:
    """Who could decide a moment ago."""
    return f"/queues/refunds/past/?at={clock.now():%Y-%m-%dT%H:%M:%S}"


PEOPLE.add("provisioning-none", "No token", "/people/provisioning/", "otto")
PEOPLE.add("own-password", "ends your other sessions", "/me/password/", "rita")
PEOPLE.add("invite", "Another administrator confirms", "/people/invite/", "adam")


@PEOPLE.scene("invite-wrong", "Nobody was invited", "adam")
def invite_wrong(gate: StoreGate) -> Submission:
    """An invitation with an amount that has no currency."""
    fields = {"full_name": "Ola", "username": "ola", "role": "reviewer", "ceiling": "5"}
    return Submission("/people/invite/", fields)


@PEOPLE.scene("person", "Change what", "alma")
def show_person(gate: StoreGate) -> str:
    """One person, whom nothing waits for."""
    return find_path("tom")


@PEOPLE.scene("person-waits", "waits for a second administrator", "alma")
def show_waiting(gate: StoreGate) -> str:
    """The change of another administrator, with its answer."""
    return find_path("rita")


@PEOPLE.scene("person-asked", "You proposed it", "adam")
def show_own(gate: StoreGate) -> str:
    """The same, as the administrator who proposed it reads it."""
    return find_path("ines")


@PEOPLE.scene("password", "Choose a password", "rita")
def choose_password(gate: StoreGate) -> str:
    """Behind the link of an invited person."""
    (change,) = (
        row for row in authority.list_waiting() if row.person.username == "ines"
    )
    person = authority.confirm_change(change_id=change.pk, by=gate.alma).person
    return f"/password/{password_links.create_token(person)}/"


def give_token(gate: StoreGate) -> None:
    """A token in force, groups, and another token that waits."""
    provisioning_tokens.make_token(reason="Our directory.", by=gate.adam)
    row = ProvisioningToken.objects.get()
    provisioning_tokens.confirm_token(token_id=row.pk, by=gate.alma)
    provisioning_tokens.make_token(
        reason="The former token was in a ticket.", by=gate.adam
    )
    group = ProvisionedGroup.objects.create(name="gate-refunds")
    for person in (gate.rita, gate.tom):
        ProvisionedMember.objects.create(group=group, person=person)


@PEOPLE.scene("provisioning", "waits for a second administrator", "alma")
def show_provisioning(gate: StoreGate) -> str:
    """The provider's tokens, one of which waits, and its groups."""
    give_token(gate)
    return "/people/provisioning/"


@PEOPLE.scene("provisioning-made", "Copy the token now", "adam")
def make_token(gate: StoreGate) -> Submission:
    """A token, shown once to whoever made it."""
    fields = {"reason": "Our directory.", "password": PASSWORD}
    return Submission("/people/provisioning/", fields)


@PEOPLE.scene("provisioning-wrong", "No token was made", "adam")
def make_token_wrong(gate: StoreGate) -> Submission:
    """A token without a reason."""
    return Submission("/people/provisioning/", {"reason": ""})


@PEOPLE.scene("queues-methods", "Without:", "alma")
def lose_passkeys(gate: StoreGate) -> str:
    """A policy that takes passkeys, which some people have no more."""
    for person in Person.objects.filter(is_active=True):
        give_key(person)
    draft = save_with_passkeys(gate)
    versions.activate_version(version_id=draft.pk, by=gate.alma)
    Passkey.objects.filter(person__in=[gate.sue, gate.rita]).delete()
    return "/queues/"
