"""What an armed panel would have sent, sent by hand once its page no longer can."""

from __future__ import annotations

import re

from .sitting import Sitting

Letter = dict[str, str | float | bool]

_FIELDS = """() => Object.fromEntries(
    [...new FormData(document.querySelector("form#decide"))])"""


def letter(desk: Sitting) -> Letter:
    """The fields of the panel as they stand, with the page's own token."""
    fields: Letter = desk.page.evaluate(_FIELDS)
    return {**fields, "seen": desk.page.locator("#seen").input_value()}


def send(desk: Sitting, request_id: str, letter: Letter) -> tuple[int, str]:
    """Post it with this person's session; the status and the page as plain text."""
    answer = desk.page.request.post(
        f"{desk.base}/requests/{request_id}/decide/", form=letter
    )
    return answer.status, re.sub(r"\s+", " ", answer.text())
