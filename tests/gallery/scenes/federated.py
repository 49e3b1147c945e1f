"""People whom an identity provider signs in, where a page asks who they are."""

from __future__ import annotations

from django.contrib.sessions.backends.db import SessionStore
from django.http import QueryDict

from desk.components import fresh_sign_in, passkey_purposes
from journal import clock
from policies.choices import StepUpMethod
from policies.models import FederatedIdentity, Person, SignIn
from reviews.decisions import submission
from tests.gallery.scene import SceneGroup, Submission
from tests.gallery.store import StoreGate

FEDERATED = SceneGroup("federated", shows=("reviews:confirm_form",), federated=True)
REASON = "They changed teams.\n<b>See the ticket</b> & tell the owner."


def take_password(name: str) -> tuple[Person, SessionStore]:
    """A person who is signed in has no password from now on, and an account at the
    provider. Their session goes on."""
    Person.objects.filter(username=name).update(password="!none")
    person = Person.objects.get(username=name)
    FederatedIdentity.objects.get_or_create(
        person=person, issuer="https://id.example.org", subject=name
    )
    key = SignIn.objects.filter(person=person).latest("began_at").session_key
    session = SessionStore(key)
    session["_auth_user_hash"] = person.get_session_auth_hash()
    session.save()
    return person, session


def write_form(name: str) -> tuple[str, dict[str, str]]:
    person = Person.objects.get(username=name)
    sent = {"act": "deactivate", "reason": REASON, "fresh": "1"}
    return f"/people/{person.public_id}/access/", sent


@FEDERATED.scene("asked", "Next you sign in again with Example ID", "rita")
def show_passkeys(gate: StoreGate) -> str:
    """A page that takes the fresh sign-in in place of the password."""
    take_password("rita")
    return "/me/passkeys/"


@FEDERATED.scene("waits", "Nothing was sent yet.", "adam")
def send_form(gate: StoreGate) -> Submission:
    """A form that waits for it."""
    take_password("adam")
    return Submission(*write_form("tom"))


@FEDERATED.scene("confirmed", "Send what you wrote.", "alma")
def come_back(gate: StoreGate) -> str:
    """The form after it."""
    person, session = take_password("alma")
    path, typed = write_form("tom")
    sent = QueryDict(mutable=True)
    sent.update(typed)
    bound = passkey_purposes.name_form(person, path, sent)
    session[fresh_sign_in.FORM] = {
        "person": person.public_id,
        "path": path,
        "page": "",
        "fields": passkey_purposes.list_fields(sent),
        "bound": bound,
        "with_code": True,
    }
    proof = submission.StepUpProof(StepUpMethod.PROVIDER, clock.now(), bound)
    submission.store_proof(session, proof)
    session.save()
    return "/me/confirm/"
