"""The pages of the policy."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.conf import settings as ours
from django.test import Client
from pytest_django import Settings

from desk.policies import pages
from journal.models import LogRecord
from policies import versions
from policies.documents.source import write_source
from policies.models import PolicyVersion
from tests import factories
from tests.conftest import Gate
from tests.markup import read_page, read_text
from tests.policies.security_key import give_key, offer_passkeys


def signed_in(gate: Gate, name: str) -> Client:
    client = Client()
    client.force_login(gate.people[name], "django.contrib.auth.backends.ModelBackend")
    return client


HIDDEN = re.compile(r'type="hidden" name="(digest|base|base_digest)" value="([^"]*)"')


def shown_of(client: Client, draft: PolicyVersion) -> dict[str, str]:
    """The fields with which the page of a draft says what it shows."""
    return dict(HIDDEN.findall(read_page(client.get(f"/policies/{draft.number}/"))))


def activate(
    client: Client,
    draft: PolicyVersion,
    shown: dict[str, str] | None = None,
    **sent: Any,
) -> Any:
    fields = {"reason": "Agreed with finance.", "password": factories.PASSWORD}
    shown = shown_of(client, draft) if shown is None else shown
    return client.post(
        f"/policies/{draft.number}/activate/", {**shown, **fields, **sent}
    )


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
    names = [line.tool.name for line in page.tools]
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
    reversals = {line.tool.name: line.reversal for line in page.tools}
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
    assert activate(adam, draft).status_code == 422
    shown = read_page(alma.get(f"/policies/{draft.number}/"))
    assert f"Changes to the active version {gate.policy.number}" in shown
    assert shown.count("over 400.00") == 3  # the changed line, the rule, and the text
    assert shown.count("over 500.00") == 1
    assert activate(alma, draft).status_code == 302
    draft.refresh_from_db()
    assert (draft.status, draft.activated_by) == ("active", gate.alma)
    active = alma.get(f"/policies/{draft.number}/")
    assert "Changes to the active" not in read_page(active)
    changed = read_text(active, "former")
    assert f"What it changed in version {gate.policy.number}" in changed
    assert "Rule pay.over_500" in changed


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
    answer = activate(alma, draft)
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
    settings.COUNTERSEAL = ours.COUNTERSEAL.model_copy(update={"callables": []})
    answer = activate(signed_in(gate, "alma"), draft)
    assert answer.status_code == 422
    page = read_page(answer)
    assert "Nothing was activated." in page
    assert "COUNTERSEAL_CALLABLES" in page
    assert "`errors`" not in page


@pytest.mark.parametrize("name", ["rita", "sue", "otto"])
def test_only_an_administrator_writes(gate: Gate, name: str) -> None:
    client = signed_in(gate, name)
    assert client.get("/policies/new/").status_code == 403
    assert client.post("/policies/new/", {"document": "name: x"}).status_code == 403
    assert b"/policies/new/" not in client.get("/policies/").content


def save(gate: Gate, **rule: Any) -> PolicyVersion:
    """A draft whose first rule differs."""
    document = factories.document_of_tests()
    document["rules"][0] |= rule
    return versions.save_draft(text_or_mapping=document, author=gate.adam)


def test_what_was_not_on_the_screen_is_not_activated(gate: Gate) -> None:
    alma = signed_in(gate, "alma")
    draft, newer = save(gate, text="Other."), save(gate, text="Newer.")
    shown = shown_of(alma, draft)
    versions.activate_version(version_id=newer.pk, by=gate.alma)
    answer = activate(alma, draft, shown)
    assert answer.status_code == 409
    page = read_page(answer)
    assert "Another policy version is active now" in page
    moved = page[page.index('data-testid="moved"') :]
    assert "Newer." in moved[: moved.index("What this version changes now")]
    assert "Agreed with finance." in page
    draft.refresh_from_db()
    assert draft.status == "draft"
    assert activate(alma, draft).status_code == 302


def test_a_draft_names_those_who_lack_what_it_takes(gate: Gate, settings: Any) -> None:
    offer_passkeys(settings)
    give_key(gate.sue)
    document = factories.document_of_tests()
    document["desk"]["step_up"] = {"high": ["passkey"]}
    draft = versions.save_draft(text_or_mapping=document, author=gate.adam)
    alma = signed_in(gate, "alma")
    page = read_page(alma.get(f"/policies/{draft.number}/"))
    assert "2 supervisors with a passkey" in page
    assert "Too few: it cannot be activated." in page
    assert "1 of 4 has a passkey" in page
    covers = page[page.index('data-testid="covers"') :]
    for who in (gate.rita, gate.tom, gate.sam):
        assert str(who) in covers[: covers.index("</table>")]
    refused = activate(alma, draft)
    assert refused.status_code == 422
    assert "1 of 2 supervisors who can decide here have a passkey" in read_page(refused)
    factories.propose(gate.agent, amount="899.00")
    page = read_page(alma.get(f"/policies/{draft.number}/"))
    assert "1 would not run as approved now" in page
    assert "2 supervisors with a passkey" in page[page.index('data-testid="effects"') :]
    give_key(gate.sam)
    assert "Too few" not in read_page(alma.get(f"/policies/{draft.number}/"))
    assert activate(alma, draft).status_code == 302


@pytest.mark.parametrize("field", ["digest", "base", "base_digest"])
def test_each_part_of_what_was_shown_is_compared(gate: Gate, field: str) -> None:
    alma, draft = signed_in(gate, "alma"), save(gate, text="Other.")
    shown = shown_of(alma, draft)
    for value, status in (("7", 409), ("", 409 if field == "base_digest" else 422)):
        answer = activate(alma, draft, {**shown, field: value})
        assert answer.status_code == status
    draft.refresh_from_db()
    assert draft.status == "draft"


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        ({"password": "wrong"}, 401, "password is not right"),
        ({"password": ""}, 422, "Enter your password."),
        ({"reason": " "}, 422, "Enter why"),
    ],
)
def test_an_activation_needs_a_password_and_a_reason(
    gate: Gate, sent: dict[str, Any], status: int, says: str
) -> None:
    alma, draft = signed_in(gate, "alma"), save(gate, text="Other.")
    answer = activate(alma, draft, **sent)
    assert answer.status_code == status
    page = read_page(answer)
    assert says in page
    assert "wrong" not in page
    draft.refresh_from_db()
    assert draft.status == "draft"


def test_what_asks_for_less_is_said_first_and_logged(gate: Gate) -> None:
    alma = signed_in(gate, "alma")
    draft = save(gate, when="args.amount > 90000")
    page = read_page(alma.get(f"/policies/{draft.number}/"))
    said = "pay over 500.00 up to 900.00 USD asks for less: 2 supervisors → 1 reviewer."
    assert "pay over 500.00 up to 900.00 USD</th>" in page
    assert page.index("Asks for less") < page.index('class="hunks"')
    activate(alma, draft)
    record = LogRecord.objects.filter(kind="policy.activated").latest("pk")
    data = json.loads(bytes(record.leaf))["data"]
    assert data["laxer"][0] == said
    assert "finance" not in bytes(record.leaf).decode()


def test_the_effect_on_waiting_requests_is_said_before(gate: Gate) -> None:
    alma = signed_in(gate, "alma")
    factories.propose(gate.agent, amount="60.00")
    factories.propose(gate.agent, amount="700.00", customer="C-2")
    path = f"/policies/{save(gate, when='args.amount > 90000').number}/"
    assert "Of 2 waiting requests: 1 would need less" in read_page(alma.get(path))
    path = f"/policies/{save(gate, when='args.amount > 5000').number}/"
    assert "Of 2 waiting requests: 1 would not run as approved now" in read_page(
        alma.get(path)
    )
    document = factories.document_of_tests()
    document["tools"]["pay"]["schema"]["required"].append("note")
    draft = versions.save_draft(text_or_mapping=document, author=gate.adam)
    page = read_page(alma.get(f"/policies/{draft.number}/"))
    assert "2 could not run any more" in page


def test_rows_lead_to_the_requests_that_a_draft_concerns(gate: Gate) -> None:
    alma, number = (
        signed_in(gate, "alma"),
        save(gate, when="args.amount > 90000").number,
    )
    same = factories.propose(gate.agent, amount="60.00").request
    less = factories.propose(gate.agent, amount="700.00", customer="C-2").request
    for path in (f"/policies/{number}/", f"/policies/{number}/waiting/?first=0"):
        page = read_page(alma.get(path))
        rows = page[page.index('data-testid="effects"') :]
        assert f"/requests/{less.pk}/" in rows
        assert f"/requests/{same.pk}/" not in rows
        assert '"Needs now" class="nowrap">2 supervisors<' in rows
        assert '"By this version" class="nowrap">1 reviewer<' in rows
    assert alma.get(f"/policies/{gate.policy.number}/waiting/").status_code == 404
    assert signed_in(gate, "sue").get(path).status_code == 403


def test_a_draft_is_refused_with_a_reason_and_never_activated(gate: Gate) -> None:
    alma, draft = signed_in(gate, "alma"), save(gate, text="Other.")
    shown = shown_of(alma, draft)
    path = f"/policies/{draft.number}/refuse/"
    empty = alma.post(path, {"reason": "  "})
    assert empty.status_code == 422
    assert "Enter why this draft is refused." in read_page(empty)
    assert signed_in(gate, "sue").post(path, {"reason": "No."}).status_code == 403
    assert alma.post(path, {"reason": "Not <b>before</b> May."}).status_code == 302
    draft.refresh_from_db()
    assert (draft.status, draft.refused_by) == ("refused", gate.alma)
    page = read_page(signed_in(gate, "rita").get(f"/policies/{draft.number}/"))
    assert "Refused by Alma Example" in page
    assert "Not &lt;b&gt;before&lt;/b&gt; May." in page
    link = f'Refused by <a href="/people/{gate.people["alma"].public_id}/">Alma'
    assert link in read_page(alma.get("/policies/"))
    answer = activate(alma, draft, shown)
    assert answer.status_code == 422
    assert alma.post(path, {"reason": "Again."}).status_code == 422
    draft.refresh_from_db()
    assert (draft.status, draft.refusal) == ("refused", "Not <b>before</b> May.")
    record = LogRecord.objects.filter(kind="policy.refused").get()
    assert "before" not in bytes(record.leaf).decode()


def test_a_former_version_comes_back_by_the_same_two_people(gate: Gate) -> None:
    adam, alma = signed_in(gate, "adam"), signed_in(gate, "alma")
    draft = save(gate, when="args.amount > 90000")
    activate(alma, draft)
    path = f"/policies/{gate.policy.number}/restore/"
    assert alma.post(f"/policies/{draft.number}/restore/").status_code == 422
    answer = adam.post(path)
    again = PolicyVersion.objects.get(status="draft")
    assert answer["Location"] == f"/policies/{again.number}/"
    assert again.digest == gate.policy.digest
    assert adam.post(path)["Location"] == answer["Location"]  # no second draft
    page = read_page(alma.get(answer["Location"]))
    assert "The same document as" in page
    assert "1 reviewer → 2 supervisors" in page
    assert activate(adam, again).status_code == 422
    assert activate(alma, again).status_code == 302
    assert PolicyVersion.objects.get(status="active") == again


def test_a_former_version_that_todays_checks_refuse_is_not_restored(
    gate: Gate, settings: Settings
) -> None:
    activate(signed_in(gate, "alma"), save(gate, text="Other."))
    settings.COUNTERSEAL = ours.COUNTERSEAL.model_copy(update={"callables": []})
    path = f"/policies/{gate.policy.number}/restore/"
    answer = signed_in(gate, "adam").post(path)
    assert answer.status_code == 422
    assert "COUNTERSEAL_CALLABLES" in read_page(answer)


def test_the_page_says_by_amount_who_decides(gate: Gate) -> None:
    page = pages.build_policy_page(gate.sue, gate.policy.number)
    (pay,) = [line for line in page.tools if line.tool.name == "pay"]
    assert [(row.when, row.people, row.deadline) for row in pay.needs][:3] == [
        ("Up to 500.00 USD", "1 reviewer", "30 min"),
        ("Over 500.00 up to 10,000.00 USD", "2 supervisors", "30 min"),
        ("Over 10,000.00 USD", "blocked", ""),
    ]
    assert pay.needs[3].people == "at least 2 supervisors"
