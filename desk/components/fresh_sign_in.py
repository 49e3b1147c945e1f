"""A fresh sign-in at the identity provider, in place of the password of a person who
has none: it confirms one verdict, or one form with exactly what it says.

The browser leaves the page for it. What was typed in a form waits in the session,
without any password or code, and is sent from a page of its own once the person is
back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from django.core import signing
from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme

from journal import clock
from journal.errors import NotPermitted
from policies import sign_ins
from policies.choices import StepUpMethod
from policies.models import Person
from reviews.decisions import submission
from reviews.decisions.submission import StepUpProof

from . import passkey_purposes
from .frame import require_person
from .step_up_means import find_provider

TOKEN_SALT, TOKEN_AGE = "desk.provider-proof", timedelta(hours=12)
_AWAITED = "awaited_provider_proof"  # in the session: the digest of its scope
FORM = "form_to_confirm"  # in the session
FLAG = "fresh"  # the field by which a form asks for it
_SEPARATORS = re.compile(r"[_.]+")


@dataclass(frozen=True, slots=True)
class WaitingForm:
    """A form that waits to be confirmed: the address that it is sent to, the page that
    it stands on, its fields as they are sent, and what a proof of it is bound to.
    `with_code`: it takes a second factor besides."""

    person: str
    path: str
    page: str
    fields: Sequence[tuple[str, Sequence[str]]]
    bound: str
    with_code: bool

    @property
    def lines(self) -> Sequence[tuple[str, str]]:
        """What the form says, for the person who wrote it."""
        return [
            (_SEPARATORS.sub(" ", name).capitalize(), "\n".join(filter(None, values)))
            for name, values in self.fields
            if any(values) and name != FLAG
        ]


class FormWaits(Exception):
    """A form waits in the session for a fresh sign-in: the browser is led to the page
    that offers it."""


def build_proof_token(person: Person, bound: str) -> str:
    """A token for the verdict or form with this digest, which this person may want to
    confirm by a fresh sign-in at the provider."""
    return signing.dumps([person.public_id, bound], salt=TOKEN_SALT)


def expect_provider_proof(request: HttpRequest, person: Person) -> None:
    """Note what a fresh sign-in of this person at the provider is awaited for: what the
    address has a token of, if anything."""
    request.session.pop(_AWAITED, None)
    try:
        who, bound = signing.loads(
            request.GET.get("confirms", ""), salt=TOKEN_SALT, max_age=TOKEN_AGE
        )
    except (signing.BadSignature, TypeError, ValueError):
        return
    if who == person.public_id:
        request.session[_AWAITED] = bound


def store_provider_proof(request: HttpRequest, person: Person, *, fresh: bool) -> bool:
    """Keep the proof that the person signed in anew at the provider for a verdict or
    form. Returns False where none is awaited. Raises NotPermitted where somebody else
    signed in there, or the provider does not say that it was just now."""
    bound = request.session.pop(_AWAITED, "")
    if not bound or not request.user.is_authenticated:
        return False
    if request.user.pk != person.pk or not fresh:  # guard: provider-proof
        raise NotPermitted("This does not confirm who you are. Nothing was done.")
    sign_ins.rotate_key(request)
    proof = StepUpProof(StepUpMethod.PROVIDER, clock.now(), bound)
    submission.store_proof(request.session, proof)
    return True


def confirm_form(request: HttpRequest, *, with_code: bool = False) -> None:
    """Spend the fresh sign-in that was made for exactly the form of this request.
    Without one the form waits in the session, and FormWaits is raised. Raises
    NotPermitted for a person whom no provider signs in alone."""
    person = require_person(request)
    if not find_provider(person):
        raise NotPermitted(
            "No identity provider confirms who you are. Nothing was done."
        )
    bound = passkey_purposes.name_own_form(request, person)
    # guard: form-proof
    if submission.find_stored_proof(request.session, bound, clock.now()) is None:
        _store_form(request, person, bound, with_code=with_code)
        raise FormWaits
    submission.discard_proof(request.session)
    request.session.pop(FORM, None)
    if not sign_ins.spend_key(request):  # guard: form-proof-once
        raise NotPermitted("This form was sent already, just now.")


def find_waiting_form(request: HttpRequest) -> WaitingForm | None:
    """The form of this person that waits for a fresh sign-in in this session."""
    stored = request.session.get(FORM)
    form = WaitingForm(**stored) if stored else None
    return form if form and form.person == require_person(request).public_id else None


def is_confirmed(request: HttpRequest, form: WaitingForm) -> bool:
    """Whether the person signed in anew for exactly this form a moment ago."""
    now = clock.now()
    return submission.find_stored_proof(request.session, form.bound, now) is not None


def _store_form(
    request: HttpRequest, person: Person, bound: str, *, with_code: bool
) -> None:
    form = WaitingForm(
        person=person.public_id,
        path=request.path,
        page=_find_page(request),
        fields=passkey_purposes.list_fields(request.POST),
        bound=bound,
        with_code=with_code,
    )
    request.session[FORM] = asdict(form)


def _find_page(request: HttpRequest) -> str:
    """The page of this site that the form was sent from; else ""."""
    page = request.headers.get("Referer", "")
    hosts, https = {request.get_host()}, request.is_secure()
    return page if url_has_allowed_host_and_scheme(page, hosts, https) else ""
