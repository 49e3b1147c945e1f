"""What an armed panel would have sent, sent by hand where no page can."""

from __future__ import annotations

import re

from reviews.models import ApprovalRequest
from tests.journeys.desk.sitting import Sitting

Letter = dict[str, str | float | bool]

_FIELDS = """() => Object.fromEntries(
    [...new FormData(document.querySelector("form#decide"))])"""


def letter(desk: Sitting) -> Letter:
    """The fields of the panel as they stand, with the page's own token."""
    fields: Letter = desk.page.evaluate(_FIELDS)
    return {**fields, "seen": desk.page.locator("#seen").input_value()}


def made_up(desk: Sitting, request: ApprovalRequest, verdict: str) -> Letter:
    """A verdict from a page that has no panel for it."""
    token = desk.page.locator("[name=csrfmiddlewaretoken]").first.input_value()
    return {
        "csrfmiddlewaretoken": token,
        "verdict": verdict,
        "version": str(request.version),
        "action_hash": request.action_hash,
        "seen": desk.page.locator("#seen").input_value(),
    }


def send(desk: Sitting, request_id: str, letter: Letter) -> tuple[int, str]:
    """Post it with this person's session; the status and the page as plain text."""
    answer = desk.page.request.post(
        f"{desk.base}/requests/{request_id}/decide/", form=letter
    )
    return answer.status, re.sub(r"\s+", " ", answer.text())
