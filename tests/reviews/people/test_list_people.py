"""`counterseal people list`, `policy list` and `policy show`."""

from __future__ import annotations

import json

import pytest
import yaml
from django.core.management import CommandError

from policies.documents.loading import restore_document
from policies.models import PolicyVersion
from tests import factories
from tests.agents.test_commands import run
from tests.conftest import Gate
from tests.journal.history import past


def test_people_are_listed_with_their_roles_and_queues(gate: Gate) -> None:
    gate.rita.first_name = "Rita\x1b[2J"
    gate.rita.save()
    rows = {row["user"]: row for row in json.loads(run("list_people", json=True))}
    assert rows["rita"]["roles"] == ["reviewer"]
    assert "money" in rows["rita"]["queues"]
    assert rows["rita"]["active"] is True
    assert "AnonymousUser" not in rows
    printed = run("list_people")
    assert "\x1b" not in printed
    assert len(printed.splitlines()) == len(rows) + 1


def test_the_versions_of_the_policy_are_listed(gate: Gate) -> None:
    (row,) = json.loads(run("list_policies", json=True))
    assert (row["version"], row["status"]) == (gate.policy.number, "active")
    assert row["saved_at"].endswith(" UTC")
    assert len(run("list_policies").splitlines()) == 2


def test_the_text_of_a_version_means_what_is_stored(gate: Gate) -> None:
    stored = gate.policy.document
    text = run("show_policy")
    assert restore_document(yaml.safe_load(text)) == restore_document(stored)
    assert run("show_policy", str(gate.policy.number)) == text
    assert json.loads(run("show_policy", json=True)) == stored


def test_a_policy_cannot_act_on_the_terminal(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["pay"]["title"] = "Pay\x1b[2J\u202e"
    with past():
        PolicyVersion.objects.filter(pk=gate.policy.pk).update(document=document)
    text = run("show_policy")
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert yaml.safe_load(text)["tools"]["pay"]["title"] == "Pay\x1b[2J\u202e"


def test_a_version_that_is_not_there_is_named(gate: Gate) -> None:
    with pytest.raises(CommandError, match="There is no version 99"):
        run("show_policy", "99")
