"""The form of the first account."""

from __future__ import annotations

from django import forms
from django.contrib.auth.validators import UnicodeUsernameValidator

from journal.errors import DomainError


class SetupForm(forms.Form):
    """A user name, a name, an address and a password."""

    username = forms.CharField(
        max_length=150, validators=[UnicodeUsernameValidator()], label="Username"
    )
    full_name = forms.CharField(max_length=150, label="Your name")
    email = forms.EmailField(max_length=254, label="E-mail")
    password = forms.CharField(
        strip=False, max_length=4096, label="Password", widget=forms.PasswordInput
    )

    def add_refusal(self, error: DomainError) -> None:
        """Show what the operation refused at its fields."""
        for fault in error.errors:
            path = fault["path"]
            self.add_error(path if path in self.fields else None, fault["message"])
        if not error.errors:
            self.add_error(None, error.cause)
