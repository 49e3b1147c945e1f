"""`counterseal setup-link`: a link for the first account, or to that of solo mode."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from policies import first_administrator, solo_account
from policies.choices import Role
from policies.models import Person
from policies.solo import is_solo


class Command(BaseCommand):
    help = (
        "Prints a link that makes the first account, an administrator's. It works for a"
        " day, until there is one. In solo mode it prints a link that signs in, once."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        link = build_link()
        if not link:
            raise CommandError(
                "an administrator has an account already. Who lost the password gets a"
                " new one with `counterseal people password NAME --by ADMINISTRATOR`"
            )
        self.stdout.write(link)


def build_link() -> str:
    """The link; empty where an administrator has an account."""
    if not first_administrator.has_administrator():
        route, token = "setup", first_administrator.create_token()
    elif is_solo():
        person = Person.objects.get(groups__name=Role.ADMINISTRATOR)
        route, token = "sign_in_by_link", solo_account.create_link_token(person)
    else:
        return ""
    path = reverse(f"reviews:{route}", args=[token])
    return f"{settings.COUNTERSEAL.base_url}{path}"
