"""The library of defects in the browser: only administrators read it, and two of them
change it."""

from __future__ import annotations

import pytest

from assurance import library
from reviews.choices import DefectKind, RealismFlag
from reviews.models import Canary, DefectChange
from tests import factories
from tests.assurance.planting import plant, plant_only
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide
from tests.markup import read_page, read_text

pytestmark = pytest.mark.django_db
LIST = "/assurance/defects/"
KIND = DefectKind.AMOUNT_TENFOLD
PAGE = f"{LIST}{KIND}/"


def test_two_administrators_change_a_kind(gate: Gate, as_: SignIn) -> None:
    adam, alma = as_("adam"), as_("alma")
    assert f'href="{LIST}"' in read_page(adam.get("/assurance/"))
    for name in ("rita", "sue", "otto", "owen"):
        assert as_(name).get(LIST).status_code == 403
        assert as_(name).get(PAGE).status_code == 403
        assert LIST not in read_page(as_(name).get("/assurance/"))
    example = read_text(adam.get(PAGE), "example")
    assert "40.00" in example
    assert "400.00" in example
    sent = {"weight": "0", "reason": "Too <obvious> \u202eodd"}
    assert adam.post(PAGE, sent).status_code == 302
    assert "a change waits" in read_text(alma.get(LIST), "library")
    own = read_text(adam.get(PAGE), "change")
    assert "Another administrator must answer." in own
    assert "Withdraw" in own
    change = DefectChange.objects.get()
    answer = f"{LIST}changes/{change.pk}/answer/"
    assert adam.post(answer, {"answer": "confirm"}).status_code == 403
    assert alma.post(answer, {"answer": "withdraw"}).status_code == 403
    shown = read_page(alma.get(PAGE))
    assert "Too &lt;obvious&gt;" in shown
    assert "\u202e" not in shown
    typed = alma.post(answer, {"answer": "later", "reason": "Not <now>"})
    assert typed.status_code == 422
    assert "Choose to confirm or to refuse" in read_text(typed, "error-reason")
    assert "Not &lt;now&gt;" in typed.content.decode()
    assert alma.post(answer, {"answer": "refuse", "reason": ""}).status_code == 422
    assert alma.post(answer, {"answer": "confirm"}).status_code == 302
    assert "Off" in read_text(alma.get(PAGE), "figures")
    assert library.load_weights()[KIND] == 0
    assert alma.post(answer, {"answer": "confirm"}).status_code == 409
    assert alma.post(f"{LIST}changes/0/answer/").status_code == 404


def test_errors_name_the_field_and_keep_what_was_typed(gate: Gate, as_: SignIn) -> None:
    adam = as_("adam")
    for weight in ("1", "9", "-1", "many", "", "\u0662"):
        refused = adam.post(PAGE, {"weight": weight, "reason": "Kept & typed"})
        assert refused.status_code == 422, weight
        assert read_text(refused, "error-weight").startswith(("Choose", "This"))
        assert "Kept &amp; typed" in refused.content.decode()
    empty = adam.post(PAGE, {"weight": "3", "reason": " "})
    assert "Say why" in read_text(empty, "error-reason")
    assert '<option value="3" selected>' in read_page(empty)
    assert adam.get(f"{LIST}unheard-of/").status_code == 404
    assert not DefectChange.objects.exists()


def test_figures_of_fewer_than_three_people_are_withheld(
    gate: Gate, as_: SignIn
) -> None:
    plant_only(gate, KIND)
    lee = factories.admitted("lee", factories.CAST["rita"])
    people = (gate.rita, gate.tom, lee)
    for number, person in enumerate(people, start=1):
        request = plant(gate, person, KIND)
        decide(request, person, "reject" if number == 1 else "approve")
        Canary.objects.update(realism=RealismFlag.OBVIOUS)
        figures = read_text(as_("adam").get(PAGE), "figures")
        assert f"Planted {number}" in figures
        if number < 3:
            assert figures.count("withheld: fewer than 3 people") == 3
    assert "Caught 33 % (1 of 3, few) Recognized as a canary 3 Unclear 0" in figures
    row = read_text(as_("adam").get(LIST), "library")
    assert "Usual 3 33 % (1 of 3, few) 3 0" in row
