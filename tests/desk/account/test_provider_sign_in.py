"""Signing in through an OpenID provider that runs here: a real server, real tokens."""

from __future__ import annotations

import re
import time
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from django.test import Client

from desk.components import identity_provider
from journal.models import LogRecord
from policies.group_access import parse_groups
from policies.models import (
    FederatedIdentity,
    Person,
    ProvisionedGroup,
    ProvisionedMember,
    ProvisionedPerson,
)
from reviews import permissions
from reviews.administration.authority import load_authority
from tests import pages
from tests.assurance.planting import reload
from tests.conftest import Gate
from tests.desk.openid import BEGIN, OLD, Directory, sign_in
from tests.factories import propose
from tests.markup import read_page

pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings(OLD)]
SIGN_IN = "/sign-in/"
GROUPS = """{"gate-supervisors": {"role": "supervisor", "queues": ["money"]},
 "gate-money": {"role": "reviewer", "queues": ["money"]},
 "gate-mail": {"role": "reviewer", "queues": ["mail"]}}"""
NINA = {
    "email": "nina@example.org",
    "email_verified": True,
    "preferred_username": "nina",
    "given_name": "Nina",
    "family_name": "Example",
}


def use_groups(settings: Any) -> None:
    changed = {"oidc_groups": parse_groups(GROUPS)}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)


def is_in(client: Client) -> bool:
    return client.get("/me/").status_code == 200


def test_without_a_provider_there_is_no_such_way(gate: Gate) -> None:
    assert Client().get(BEGIN).status_code == 404
    assert Client().get(f"{BEGIN}callback/").status_code == 404
    assert "Sign in with" not in read_page(Client().get(SIGN_IN))


def test_a_person_is_known_by_a_checked_address_and_then_by_the_account(
    gate: Gate, directory: Directory
) -> None:
    client = Client()
    page = read_page(client.get(f"{SIGN_IN}?next=/log/"))
    assert "Sign in with Example ID" in page
    directory.put("sub-sue", email=gate.sue.email, email_verified=True)
    client, answer = sign_in(directory, "sub-sue", client, "?next=/log/")
    assert answer["Location"] == "/log/"
    assert client.session["_auth_user_id"] == str(gate.sue.pk)
    assert LogRecord.objects.filter(kind="person.federated").count() == 1
    directory.put("sub-sue", email="elsewhere@example.org", email_verified=True)
    client, answer = sign_in(directory, "sub-sue", query="?next=https://evil.example/")
    assert answer["Location"] == "/"
    assert client.session["_auth_user_id"] == str(gate.sue.pk)
    assert FederatedIdentity.objects.count() == 1


def test_an_address_that_nobody_checked_opens_no_account(
    gate: Gate, directory: Directory, settings: Any
) -> None:
    use_groups(settings)
    for claims in ({}, {"email_verified": False}, {"email_verified": "no"}):
        directory.put("sub-x", email=gate.adam.email, groups=["gate-money"], **claims)
        client, answer = sign_in(directory, "sub-x")
        assert answer.status_code == 403
        assert "does not say that it checked" in read_page(answer)
        assert not is_in(client)
    assert not FederatedIdentity.objects.exists()


def test_a_second_account_with_the_address_is_not_let_in(
    gate: Gate, directory: Directory
) -> None:
    directory.put("sub-1", email=gate.sue.email, email_verified=True)
    directory.put("sub-2", email=gate.sue.email, email_verified=True)
    assert sign_in(directory, "sub-1")[1].status_code == 302
    client, answer = sign_in(directory, "sub-2")
    assert answer.status_code == 403
    assert not is_in(client)


def test_a_deactivated_person_stays_out(gate: Gate, directory: Directory) -> None:
    directory.put("sub-tom", email=gate.tom.email, email_verified=True)
    client, _ = sign_in(directory, "sub-tom")
    assert is_in(client)
    Person.objects.filter(pk=gate.tom.pk).update(is_active=False)
    assert not is_in(client)
    assert sign_in(directory, "sub-tom")[1].status_code == 403


def test_somebody_without_an_account_is_not_added_unless_a_group_says_so(
    gate: Gate, directory: Directory, settings: Any
) -> None:
    directory.put("sub-nina", **NINA, groups=["gate-money", "staff"])
    assert sign_in(directory, "sub-nina")[1].status_code == 403
    assert not Person.objects.filter(email=NINA["email"]).exists()
    use_groups(settings)
    client, answer = sign_in(directory, "sub-nina")
    assert answer.status_code == 302
    nina = Person.objects.get(email=NINA["email"])
    assert (nina.username, nina.get_full_name()) == ("nina", "Nina Example")
    assert not nina.has_usable_password()
    assert load_authority(nina).role == "reviewer"
    assert load_authority(nina).queues == {"money"}
    assert is_in(client)


def test_groups_say_at_each_sign_in_what_a_person_may_do(
    gate: Gate, directory: Directory, settings: Any
) -> None:
    use_groups(settings)
    directory.put("sub-nina", **NINA, groups=["gate-mail", "gate-money"])
    sign_in(directory, "sub-nina")
    nina = Person.objects.get(email=NINA["email"])
    assert load_authority(nina).queues == {"mail", "money"}
    directory.put("sub-nina", **NINA, groups=["gate-mail", "gate-supervisors"])
    sign_in(directory, "sub-nina")
    authority = load_authority(Person.objects.get(pk=nina.pk))
    assert authority.role == "supervisor"
    assert authority.queues == {"money"}
    directory.put("sub-nina", **NINA, groups=["staff"])
    client, answer = sign_in(directory, "sub-nina")
    assert answer.status_code == 403
    assert "None of your groups" in read_page(answer)
    assert not is_in(client)
    by_the_gate = LogRecord.objects.filter(kind="person.dismissed").latest("pk")
    assert permissions.roles_of(Person.objects.get(pk=nina.pk)) == {"supervisor"}
    assert by_the_gate.actor_kind == "system"


def test_an_answer_works_once_and_in_its_own_browser(
    gate: Gate, directory: Directory
) -> None:
    directory.put("sub-sue", email=gate.sue.email, email_verified=True)
    client = Client()
    onward = client.get(BEGIN)["Location"]
    query = parse_qs(urlsplit(onward).query)
    assert query["code_challenge_method"] == ["S256"]
    assert {"state", "nonce", "code_challenge"} <= query.keys()
    back = directory.consent(onward, "sub-sue")
    other = Client()
    assert other.get(back).status_code == 403
    assert not is_in(other)
    assert client.get(back).status_code == 302
    assert client.get(back).status_code == 403
    for wrong in ("", "?state=x&code=y", "?error=access_denied&state=x"):
        refused = Client().get(f"{BEGIN}callback/{wrong}")
        assert refused.status_code == 403
        assert "Example ID did not sign you in" in read_page(refused)


def test_a_provider_that_is_away_is_one_line(
    gate: Gate, directory: Directory, settings: Any
) -> None:
    changed = {"oidc_issuer": "http://localhost:1"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    answer = Client().get(BEGIN)
    assert answer.status_code == 503
    assert "gave no usable answer" in read_page(answer)


def test_the_document_of_another_issuer_and_weak_signatures_are_refused(
    gate: Gate, directory: Directory, settings: Any
) -> None:
    provider = identity_provider.load_provider()
    named = "id_token_signing_alg_values_supported"
    assert provider.load_server_metadata()[named] == ["RS256"]
    provider.server_metadata[named] = ["none", "HS256", "ES256"]
    assert provider.load_server_metadata()[named] == ["ES256"]
    changed = {"oidc_issuer": directory.address.replace("localhost", "127.0.0.1")}
    named_otherwise = settings.COUNTERSEAL.model_copy(update=changed)
    provider.server_metadata.clear()
    settings.COUNTERSEAL = named_otherwise
    with pytest.raises(ValueError, match="another issuer"):
        provider.load_server_metadata()


def test_groups_that_the_provider_keeps_here_count_in_place_of_the_answers(
    gate: Gate, directory: Directory, settings: Any
) -> None:
    use_groups(settings)
    claims = {"email": gate.sue.email, "email_verified": True}
    directory.put("sub-sue", groups=["gate-supervisors"], **claims)
    group = ProvisionedGroup.objects.create(name="gate-mail")
    assert is_in(sign_in(directory, "sub-sue")[0])  # not kept: the answer counts
    assert load_authority(reload(gate.sue)).queues == {"money"}
    ProvisionedPerson.objects.create(person=gate.sue)
    assert sign_in(directory, "sub-sue")[1].status_code == 403  # in no group
    ProvisionedMember.objects.create(group=group, person=gate.sue)
    assert is_in(sign_in(directory, "sub-sue")[0])
    assert load_authority(reload(gate.sue)).queues == {"mail"}


def test_a_fresh_sign_in_confirms_the_one_verdict_that_it_was_for(
    gate: Gate, directory: Directory
) -> None:
    asked = propose(gate.agent, amount="899.00").request
    gate.sue.set_unusable_password()
    gate.sue.save()
    for who in (gate.sue, gate.sam):
        about = {"email": who.email, "email_verified": True}
        directory.put(f"sub-{who.username}", **about)
    client, _ = sign_in(directory, "sub-sue")
    panel = f"/requests/{asked.pk}/decide/?arm=approve"
    found = re.search(r"confirms=([^&\"]+)", client.get(panel).content.decode())
    assert found
    query = f"?fresh&confirms={found[1]}&next={quote(panel)}"
    sue = {"email": gate.sue.email, "email_verified": True}

    def decide() -> int:
        sent = {
            "verdict": "approve",
            "version": asked.version,
            "action_hash": asked.action_hash,
            "seen": pages.token(asked, "sue"),
        }
        return client.post(f"/requests/{asked.pk}/decide/", sent).status_code

    assert decide() == 401
    directory.put("sub-sue", **sue, auth_time=int(time.time()) - 3600)
    assert sign_in(directory, "sub-sue", client, query)[1].status_code == 403
    assert sign_in(directory, "sub-sam", client, query)[1].status_code == 403
    assert client.session["_auth_user_id"] == str(gate.sue.pk)
    directory.put("sub-sue", **sue)
    plain = query.replace(found[1], "made-up")
    sign_in(directory, "sub-sue", client, plain)
    assert decide() == 401
    before = client.session.session_key
    _, answer = sign_in(directory, "sub-sue", client, query)
    assert answer["Location"] == panel
    assert client.session.session_key != before
    assert "Identity confirmed" in read_page(client.get(panel))
    assert decide() in {200, 302, 303}
    assert asked.decisions.get().authority["step_up"] == "provider"


def test_the_provider_is_asked_anew_whether_it_answers(
    directory: Directory, settings: Any
) -> None:
    assert identity_provider.probe() == ""
    identity_provider.load_provider().load_server_metadata()  # this process has it now
    gone = {"oidc_issuer": "http://127.0.0.1:1"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=gone)
    assert "does not answer as a provider" in identity_provider.probe()
    other = {"oidc_issuer": f"{directory.address}/."}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=other)
    assert identity_provider.probe() != ""
