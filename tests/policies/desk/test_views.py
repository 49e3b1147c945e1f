"""The pages of the policy."""

from __future__ import annotations

import pytest
from django.conf import settings as ours
from django.test import Client
from pytest_django import Settings

from policies import versions
from policies.desk import pages
from policies.documents.source import write_source
from policies.models import PolicyVersion
from tests import factories
from tests.conftest import Gate
from tests.markup import read_page


def signed_in(gate: Gate, name: str) -> Client:
    client = Client()
    client.force_login(gate.people[name], "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.mark.parametrize("name", ["rita", "sue", "adam", "otto"])
def test_those_who_work_under_it_read_it(gate: Gate, name: str) -> None:
    client = signed_in(gate, name)
    assert b'data-testid="version-active"' in client.get("/policies/").content
    source = read_page(client.get(f"/policies/{gate.policy.number}/"))
    assert "Payments over 500.00 need two supervisors." in source
    assert "args.amount &gt; 50000" in source
    assert "1 reviewer" in source
    assert "2 supervisors" in source


def test_tools_queues_and_undo_windows_have_a_fixed_order(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["recall"] = {"critical": 0, "high": 90, "medium": 60, "low": 3600}
    draft = versions.save_draft(text_or_mapping=document, author=gate.adam)
    page = pages.build_policy_page(gate.sue, draft.number)
    names = [tool.name for tool in page.tools]
    assert names == sorted(names)
    assert page.queues == sorted(page.queues)
    assert page.recall == [
        ("low", "1 h"),
        ("medium", "1 min"),
        ("high", "90 s"),
        ("critical", ""),
    ]


def test_a_tool_says_how_it_is_reversed_or_why_it_counts_as_reversible(
    gate: Gate,
) -> None:
    page = pages.build_policy_page(gate.sue, gate.policy.number)
    reversals = {tool.name: tool.reversal for tool in page.tools}
    assert reversals["look"] == ["reversible: It changes nothing"]
    assert reversals["pay"] == ["by repay"]


def test_an_owner_does_not(gate: Gate) -> None:
    owen = signed_in(gate, "owen")
    assert owen.get("/policies/").status_code == 404
    assert owen.get(f"/policies/{gate.policy.number}/").status_code == 404
    assert b'href="/policies/"' not in owen.get("/agents/").content


def test_there_is_nothing_to_write_here(gate: Gate) -> None:
    sue = signed_in(gate, "sue")
    assert sue.post("/policies/").status_code == 405
    assert sue.get("/policies/99/").status_code == 404
    assert Client().get("/policies/")["Location"].startswith("/sign-in/")


def test_an_administrator_writes_a_version_and_another_activates_it(gate: Gate) -> None:
    adam, alma = signed_in(gate, "adam"), signed_in(gate, "alma")
    page = read_page(adam.get("/policies/new/"))
    assert "Payments over 500.00 need two supervisors." in page
    text = write_source(gate.policy.document).replace("over 500.00", "over 400.00")
    answer = adam.post(f"/policies/new/?from={gate.policy.number}", {"document": text})
    draft = PolicyVersion.objects.get(status="draft")
    assert answer["Location"] == f"/policies/{draft.number}/"
    own = read_page(adam.get(f"/policies/{draft.number}/"))
    assert "Another administrator must activate it." in own
    assert adam.post(f"/policies/{draft.number}/activate/").status_code == 422
    shown = read_page(alma.get(f"/policies/{draft.number}/"))
    assert f"Changes to the active version {gate.policy.number}" in shown
    assert shown.count("over 400.00") == 2  # the changed line, and the rule
    assert shown.count("over 500.00") == 1
    assert alma.post(f"/policies/{draft.number}/activate/").status_code == 302
    draft.refresh_from_db()
    assert (draft.status, draft.activated_by) == ("active", gate.alma)
    assert "Changes to the active" not in read_page(
        alma.get(f"/policies/{draft.number}/")
    )


def test_a_text_with_errors_is_kept_and_says_where(gate: Gate) -> None:
    adam = signed_in(gate, "adam")
    text = write_source(gate.policy.document).replace("args.amount >", "args.amuont >")
    answer = adam.post("/policies/new/", {"document": text})
    assert answer.status_code == 422
    page = read_page(answer)
    assert "Line " in page
    assert "when: args.amuont" in page[: page.index("YAML")]
    assert not PolicyVersion.objects.filter(status="draft").exists()
    assert adam.post("/policies/new/", {"document": "name: ["}).status_code == 422


def test_a_draft_that_nobody_could_decide_is_not_activated(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["queues"]["night"] = "Night"
    document["tools"]["pay"]["queue"] = "night"
    draft = versions.save_draft(text_or_mapping=document, author=gate.adam)
    alma = signed_in(gate, "alma")
    answer = alma.post(f"/policies/{draft.number}/activate/")
    assert answer.status_code == 422
    assert "Too few people can decide this policy." in read_page(answer)
    gate.policy.refresh_from_db()
    assert gate.policy.status == "active"


def test_a_draft_that_later_checks_refuse_is_not_activated(
    gate: Gate, settings: Settings
) -> None:
    draft = versions.save_draft(
        text_or_mapping=factories.document_of_tests(), author=gate.adam
    )
    settings.HOLDPOINT = ours.HOLDPOINT.model_copy(update={"callables": []})
    answer = signed_in(gate, "alma").post(f"/policies/{draft.number}/activate/")
    assert answer.status_code == 422
    page = read_page(answer)
    assert "Nothing was activated." in page
    assert "HOLDPOINT_CALLABLES" in page
    assert "`errors`" not in page


@pytest.mark.parametrize("name", ["rita", "sue", "otto"])
def test_only_an_administrator_writes(gate: Gate, name: str) -> None:
    client = signed_in(gate, name)
    assert client.get("/policies/new/").status_code == 403
    assert client.post("/policies/new/", {"document": "name: x"}).status_code == 403
    assert b"/policies/new/" not in client.get("/policies/").content
