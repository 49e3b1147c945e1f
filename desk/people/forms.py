"""The forms of people: an invitation, what a person may do, an answer, a password."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.http import HttpRequest

from journal.errors import DomainError
from policies import money
from policies.choices import Role
from policies.money import Money
from policies.passkeys import LONGEST_ANSWER
from policies.step_up import TypedProof, confirm_identity
from reviews.administration.authority import Authority, Invitation
from reviews.administration.second_person import LONGEST_TEXT

from ..components import passkey_purposes
from ..components.frame import require_person
from ..components.fresh_sign_in import confirm_form
from ..forms import CODE_LENGTH, TextField

ROLE_LABELS = {
    Role.REVIEWER: "Reviewer",
    Role.SUPERVISOR: "Supervisor",
    Role.ADMINISTRATOR: "Administrator",
    Role.AUDITOR: "Auditor",
    Role.OWNER: "Agent owner",
}


class PasswordCheckedForm(forms.Form):
    """The password of whoever sends the form, a code of their authenticator app, or the
    answer of a passkey for exactly this form. `fresh` asks for a fresh sign-in at the
    identity provider in place of all of them."""

    password = forms.CharField(max_length=1024, strip=False, required=False)
    one_time_code = TextField(max_length=CODE_LENGTH, required=False)
    fresh = forms.BooleanField(required=False)
    passkey = TextField(max_length=LONGEST_ANSWER, required=False)

    def clean_passkey(self) -> str:
        """The answer of a passkey; without any proof, mark a missing password."""
        answer: str = self.cleaned_data["passkey"]
        others = ("password", "one_time_code", "fresh")
        if not answer and not any(self.cleaned_data.get(name) for name in others):
            self.add_error("password", "Enter your password.")
        return answer

    def confirm(self, http: HttpRequest) -> None:
        """Check the proof of whoever sent the valid form. Raises what
        `confirm_identity` and `confirm_form` raise."""
        sent, person = self.cleaned_data, require_person(http)
        proof = TypedProof(sent["password"], sent["one_time_code"], sent["passkey"])
        if sent["fresh"] and not any(proof):
            confirm_form(http)
            return
        purpose = passkey_purposes.name_own_form(http, person)
        confirm_identity(http, person, proof, purpose)

    def act(self, http: HttpRequest, operation: Callable[[], object]) -> bool:
        """Check the proof of whoever sent the valid form, then run the operation. A
        refusal goes to the form; then it returns False. Raises FormWaits where a fresh
        sign-in is still to come."""
        try:
            self.confirm(http)
            operation()
        except DomainError as error:
            self.add_refusal(error)
            return False
        return True

    def add_refusal(self, refusal: DomainError) -> None:
        """Show each problem that the operation found at its field."""
        for error in refusal.errors:
            name = error["path"]
            self.add_error(name if name in self.fields else None, error["message"])
        if not refusal.errors:
            self.add_error(None, refusal.detail)


class SteppedUpForm(PasswordCheckedForm):
    """A reason, and the password of the administrator who sends the form."""

    reason = TextField(
        max_length=LONGEST_TEXT, error_messages={"required": "Enter why."}
    )


class AuthorityAnswerForm(SteppedUpForm):
    """The answer of the second administrator; only a refusal needs a reason."""

    reason = TextField(max_length=LONGEST_TEXT, required=False)


class AuthorityForm(SteppedUpForm):
    """What a person may do. `queues` are pairs of a name and a title."""

    email = forms.EmailField(
        max_length=254,
        error_messages={
            "required": "Enter an address.",
            "invalid": "Enter an address, such as rita@example.org.",
        },
    )
    role = forms.ChoiceField(
        choices=list(ROLE_LABELS.items()),
        error_messages={
            "required": "Choose a role.",
            "invalid_choice": "Choose one of these roles.",
        },
    )
    queues = forms.MultipleChoiceField(
        required=False,
        error_messages={"invalid_choice": "Choose among these queues only."},
    )
    ceiling = forms.CharField(required=False, max_length=20)
    currency = forms.CharField(required=False, max_length=3)

    def __init__(
        self, *args: Any, queues: Iterable[tuple[str, str]] = (), **more: Any
    ) -> None:
        super().__init__(*args, **more)
        chosen: Any = self.fields["queues"]
        chosen.choices = list(queues)

    def clean(self) -> None:
        """Mark an amount that is none, and one without a currency."""
        amount = self.cleaned_data.get("ceiling", "").strip()
        currency = self.cleaned_data.get("currency", "").strip().upper()
        self.cleaned_data["money"] = None
        if not amount:
            return
        try:
            self.cleaned_data["money"] = money.parse(amount, currency)
        except ValueError as error:
            self.add_error("ceiling", f"Enter an amount and its currency: {error}")

    @property
    def authority(self) -> Authority:
        """What a valid form wants."""
        sent = self.cleaned_data
        limit: Money | None = sent["money"]
        return Authority(
            role=Role(sent["role"]),
            queues=frozenset(sent["queues"]),
            ceiling=limit,
            email=sent["email"],
        )


class InvitationForm(AuthorityForm):
    """Who is invited, and what they may do."""

    username = forms.CharField(
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        error_messages={"required": "Enter a username."},
    )
    full_name = forms.CharField(
        max_length=150, error_messages={"required": "Enter the person's name."}
    )

    @property
    def invitation(self) -> Invitation:
        """What a valid form asks for."""
        sent = self.cleaned_data
        first, _, last = sent["full_name"].strip().partition(" ")
        return Invitation(sent["username"], first, last, self.authority)


class PasswordForm(forms.Form):
    """A new password, typed twice."""

    password = forms.CharField(
        strip=False,
        max_length=4096,
        error_messages={"required": "Enter a password."},
    )
    again = forms.CharField(
        strip=False,
        max_length=4096,
        error_messages={"required": "Enter the same password again."},
    )

    def clean(self) -> None:
        """Mark the second one where the two differ."""
        sent = self.cleaned_data
        if sent.get("password") and sent.get("again") not in (None, sent["password"]):
            self.add_error("again", "The two passwords differ. Enter the same twice.")

    def add_refusal(self, refusal: DomainError) -> None:
        """Show what the operation found."""
        for error in refusal.errors:
            self.add_error("password", error["message"])
        if not refusal.errors:
            self.add_error(None, refusal.detail)


class OwnPasswordForm(PasswordForm):
    """A new password in place of the present one."""

    present = forms.CharField(
        strip=False,
        max_length=1024,
        error_messages={"required": "Enter your present password."},
    )
