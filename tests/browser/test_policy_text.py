"""The text of a policy in the browser: numbered, checked while it is typed, and read
from a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from policies.documents.source import write_source
from policies.models import PolicyVersion
from tests.browser.conftest import SitDown
from tests.conftest import Gate

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def test_a_text_is_checked_as_it_is_typed_and_an_error_leads_to_its_line(
    gate: Gate, sit_down: SitDown, tmp_path: Path
) -> None:
    page = sit_down("adam").open("/policies/new/")
    text = write_source(gate.policy.document)
    wrong = text.replace("args.amount > 50000", "args.amuont > 50000")
    line = wrong[: wrong.index("args.amuont")].count("\n") + 1
    file = tmp_path / "policy.yaml"
    file.write_text(wrong)
    page.set_input_files("#id_file", file)
    link = page.locator(f"#check a[data-line='{line}']").first
    expect(link).to_be_visible()
    expect(page.locator(f"#numbers [id='line-{line}']")).to_be_visible()
    link.click()
    chosen = page.evaluate(
        "(([a]) => a.value.slice(a.selectionStart, a.selectionEnd))"
        "([document.activeElement])"
    )
    assert "args.amuont" in chosen
    page.keyboard.type(chosen.replace("50000", "90000").replace("amuont", "amount"))
    expect(page.locator("#check")).to_contain_text("No errors.")
    expect(page.locator("#check")).to_contain_text("2 supervisors → 1 reviewer")
    expect(page.locator("#numbers [id]")).to_have_count(0)
    assert not PolicyVersion.objects.filter(status="draft").exists()
