"""What a sign-in through the provider reads, it reads under the lock on the person."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies.models import ProvisionedGroup, ProvisionedPerson
from reviews.administration.single_sign_on import ProviderAccount, admit_account
from tests.conftest import Gate

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("linked", [False, True])
def test_groups_are_read_under_the_lock(gate: Gate, *, linked: bool) -> None:
    ProvisionedPerson.objects.create(person=gate.sue)
    ProvisionedGroup.objects.create(name="gate-money")
    account = ProviderAccount(
        "https://id", "sub-sue", gate.sue.email, "sue", "", "", frozenset()
    )
    if linked:
        admit_account(account)
    with CaptureQueriesContext(connection) as captured:
        assert admit_account(account) == gate.sue
    texts = [one["sql"] for one in captured]
    locked = [at for at, sql in enumerate(texts) if "FOR NO KEY UPDATE" in sql]
    read = [at for at, sql in enumerate(texts) if "policies_provisioned" in sql]
    assert locked[0] < read[0]
