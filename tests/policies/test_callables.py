"""A policy may name only the functions that the deployment lists."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings as ours
from pytest_django import Settings

from policies import callables, versions
from policies.documents import InvalidPolicy, parse_document
from policies.models import PolicyVersion
from reviews.tool_services import executors, readers, verifiers
from reviews.tool_services.executors import Call
from tests import factories, worlds
from tests.conftest import Gate
from tests.reviews.definitions import tool

PATH = "tests.worlds.keyed"
HERE = {"kind": "callable", "path": PATH}
CALL = Call("pay", 1, {}, "x-1", "cs-1", 1)


@pytest.fixture
def listed(settings: Settings) -> Any:
    """`listed("shop.effects")`: what COUNTERSEAL_CALLABLES says."""

    def say(*modules: str) -> None:
        changed = ours.COUNTERSEAL.model_copy(update={"callables": list(modules)})
        settings.COUNTERSEAL = changed

    return say


@pytest.mark.parametrize(
    ("path", "modules", "may"),
    [
        ("shop.effects.pay", ["shop.effects"], True),
        ("shop.effects:pay", ["shop.effects"], True),
        ("shop.effects.cards.pay", ["shop"], True),
        ("shop.effects.pay", [], False),
        ("shop.effects_of_others.pay", ["shop.effects"], False),
        ("shop.effects", ["shop.effects"], False),
        ("shopping.pay", ["shop"], False),
        ("os.system", ["shop"], False),
        ("reviews.verifier_rules.maximum_amount", [], True),
        ("reviews.verifier_rules:maximum_amount", [], True),
        ("reviews.verifier_rulesets.any", [], False),
        ("reviews.decisions.decide.decide_request", [], False),
    ],
)
def test_a_listed_module_and_what_is_below_it(
    listed: Any, path: str, modules: list[str], may: bool
) -> None:
    listed(*modules)
    assert callables.is_listed(path) is may


def test_every_place_of_a_document_is_looked_at(listed: Any) -> None:
    listed()
    document = factories.document_of_tests()
    pay = document["tools"]["pay_queryable"]
    pay |= {"verifiers": [HERE], "reader": HERE, "dry_run": HERE}
    pay["look_up"] = {"path": "tests.worlds.find"}
    document["verifiers"] = {"money": [HERE]}
    paths = {path for path, _ in callables.list_problems(parse_document(document))}
    places = ("verifiers.0", "reader", "dry_run", "look_up", "executor")
    assert {f"tools.pay_queryable.{place}" for place in places} <= paths
    assert "verifiers.money.0" in paths


def test_it_is_refused_when_saved_and_when_put_in_force(
    gate: Gate, listed: Any
) -> None:
    draft = versions.save_draft(
        text_or_mapping=factories.document_of_tests(), author=gate.adam
    )
    listed("shop")
    with pytest.raises(InvalidPolicy) as refused:
        versions.save_draft(
            text_or_mapping=factories.document_of_tests(), author=gate.adam
        )
    messages = {error["path"]: error["message"] for error in refused.value.errors}
    assert messages["tools.look.executor"] == callables.NOT_LISTED_TEXT.format(PATH)
    with pytest.raises(InvalidPolicy):
        versions.activate_version(version_id=draft.pk, by=gate.alma)
    assert PolicyVersion.objects.count() == 2


def test_it_is_refused_when_called(listed: Any, empty_world: None) -> None:
    definition = tool(executor=HERE, reader=HERE, verifiers=[HERE], keys=["order"])
    assert executors.perform_effect(definition, CALL).status == "succeeded"
    listed("shop")
    outcome = executors.perform_effect(definition, CALL)
    assert (outcome.status, outcome.code) == ("failed", "callable_not_listed")
    assert PATH in outcome.detail
    assert len(worlds.effects()) == 1
    assert readers.read_state(definition, {}).problem == "CallableNotListed"
    answer = verifiers.run_verifiers(definition.verifiers, {}, stage="effect")
    assert isinstance(answer, verifiers.VerifierRefusal)


def test_nothing_is_imported_to_refuse_it(listed: Any) -> None:
    listed("shop")
    with pytest.raises(callables.CallableNotListed):
        callables.load_function("nowhere.to.be_found")
