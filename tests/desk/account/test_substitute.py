"""The page of a person's substitute."""

from __future__ import annotations

from datetime import timedelta

import pytest

from journal import clock
from policies.choices import Role
from policies.models import Substitution
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import PASSWORD
from tests.markup import read_page

pytestmark = pytest.mark.django_db
PAGE = "/me/substitute/"


def test_queues_are_handed_over_and_both_see_it(gate: Gate, as_: SignIn) -> None:
    nora = factories.person("nora", Role.REVIEWER)
    gate.people["nora"] = nora
    rita = as_("rita")
    assert "sue" not in read_page(rita.get(PAGE))  # a supervisor does not stand in
    sent = {
        "substitute": nora.public_id,
        "queues": ["mail"],
        "until": f"{clock.now() + timedelta(days=3):%Y-%m-%dT%H:%M}",
    }
    wrong = rita.post(PAGE, {**sent, "password": "wrong"})
    assert wrong.status_code == 422
    assert f'value="{sent["until"]}"' in wrong.content.decode()
    assert not Substitution.objects.exists()
    assert rita.post(PAGE, {**sent, "password": PASSWORD}).status_code == 302
    row = Substitution.objects.get()
    assert "Nora Example decides for you in" in read_page(rita.get("/queue/"))
    assert "You decide for Rita Example in" in read_page(as_("nora").get("/queue/"))
    about_rita = read_page(as_("adam").get(f"/people/{gate.rita.public_id}/"))
    assert "Handed over" in about_rita
    for ended, status in ((str(row.pk), 302), (str(row.pk), 404), ("x", 422)):
        assert as_("nora").post(PAGE, {"end": ended}).status_code == status
    assert "decide for Rita" not in read_page(as_("nora").get("/queue/"))


def test_who_decides_nothing_hands_nothing_over(gate: Gate, as_: SignIn) -> None:
    adam = as_("adam")
    assert "You have no queue to hand over" in read_page(adam.get(PAGE))
    assert adam.post(PAGE, {"queues": "mail"}).status_code == 403
