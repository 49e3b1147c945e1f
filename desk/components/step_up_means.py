"""What a person can prove with who they are, where a page asks for it again."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from policies import passkeys, second_factors
from policies.choices import StepUpMethod, describe_methods
from policies.models import FederatedIdentity, Person
from policies.step_up import is_provider_offered
from reviews.decisions import case
from reviews.models import RequestVersion


@dataclass(frozen=True, slots=True)
class StepUpMeans:
    """The methods that this person has, of those that count. `wanted` says which these
    are, where not all do."""

    password: bool
    app: bool
    passkey: bool
    provider: str = (
        ""  # its name, where the person has no password but an account there
    )
    wanted: str = ""

    @property
    def has_none(self) -> bool:
        """Whether the person has no password, and the identity provider in its
        place."""
        return bool(self.provider) and not self.password

    @property
    def needs_password(self) -> bool:
        """Whether nothing can take the place of the password."""
        return not (self.app or self.passkey or self.provider)


def list_step_up_means(
    person: Person, version: RequestVersion | None = None
) -> StepUpMeans:
    """The methods that the person has now, for a decision of the version those that its
    policy takes."""
    methods = case.list_step_up_methods(version) if version else [*StepUpMethod]
    passkey = passkeys.is_offered() and second_factors.has_passkey(person)
    some = len(methods) < len(StepUpMethod)
    return StepUpMeans(
        password=StepUpMethod.PASSWORD in methods and person.has_usable_password(),
        app=StepUpMethod.TOTP in methods
        and second_factors.find_device(person) is not None,
        passkey=StepUpMethod.PASSKEY in methods and passkey,
        provider=find_provider(person) if StepUpMethod.PROVIDER in methods else "",
        wanted=describe_methods(methods) if some else "",
    )


def find_provider(person: Person) -> str:
    """The name of the identity provider that alone signs the person in, or ""."""
    if person.has_usable_password() or not is_provider_offered():
        return ""
    linked = FederatedIdentity.objects.filter(person=person).exists()
    return settings.COUNTERSEAL.oidc_label if linked else ""
