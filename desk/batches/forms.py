"""The form of a batch page. Every button submits it: the rows, which of them are ticked
or opened, and the fields of a verdict."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from django import forms
from django.http import QueryDict

from reviews.choices import REASON_LABELS, VERDICT_SPECS, Verdict

from ..forms import TextField

MAX_ROWS = 100
MAX_TOKEN_LENGTH = 500
MAX_DIGITS = 18  # of a number that fits into a bigint


VERDICTS = tuple(verdict for verdict, spec in VERDICT_SPECS.items() if spec.batchable)


class BatchButton(StrEnum):
    """The button that was pressed. Some carry an argument after a colon."""

    SELECT = "select"
    OPEN = "open"  # open:<request>
    SPLIT = "split"
    LOOK = "look"  # poll for changes since the page was made
    REFRESH = "refresh"
    ARM = "arm"  # arm:approve, arm:reject, arm:escalate
    COMMIT = "commit"


class ShownBatchRow(NamedTuple):
    """One row as a page showed it: the request's version and the reading of the state,
    which is None for the revision's own, and their mark if the page sent it."""

    request: str
    version: int
    reading: int | None
    mark: str = ""


class BatchForm(forms.Form):
    """Parses the POST of a batch page.

    `row` is `<request>~<mark>~<version>~<reading>` for every row, `item` the ticked
    requests, `before` is `<request>~<mark>` for every row that an earlier page reported
    as changed, `opened` holds the tokens of rows, `seen` the token of the page.
    """

    verdict = forms.ChoiceField(
        choices=[(verdict.value, verdict.value) for verdict in VERDICTS], required=False
    )
    digest = TextField(max_length=80, required=False)
    reason_code = forms.ChoiceField(choices=list(REASON_LABELS.items()), required=False)
    reason = TextField(max_length=2000, required=False)
    ready = TextField(max_length=16, required=False)  # the key of a ready text
    stop = forms.BooleanField(required=False)
    split = TextField(max_length=20, required=False)

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data)
        self.lists = data
        self.is_valid()  # drops invalid fields; the operation refuses the rest

    @property
    def do(self) -> BatchButton:
        """The button; SELECT for an unknown one."""
        name, _, _ = self._pressed.partition(":")
        return BatchButton(name) if name in set(BatchButton) else BatchButton.SELECT

    @property
    def argument(self) -> str:
        return self._pressed.partition(":")[2]

    @property
    def _pressed(self) -> str:
        return str(self.data.get("do", ""))[:80]

    @property
    def armed(self) -> Verdict:
        """The verdict to arm; REJECT, which has no effect outside, if unknown."""
        name = self.argument
        return Verdict(name) if name in set(VERDICTS) else Verdict.REJECT

    @property
    def meant(self) -> Verdict:
        """The verdict to commit. Defaults to REJECT, which is harmless."""
        name = self.cleaned_data.get("verdict", "")
        return Verdict(name) if name else Verdict.REJECT

    @property
    def items(self) -> list[str]:
        """The ticked requests, each once."""
        return list(dict.fromkeys(self._list("item", 40)))

    @property
    def marks(self) -> dict[str, str]:
        """The mark of every row on the page, by request; unticked rows too."""
        return {row.request: row.mark for row in self.rows}

    @property
    def rows(self) -> list[ShownBatchRow]:
        return [_parse_row(text) for text in self._list("row", 80)]

    @property
    def opened(self) -> list[str]:
        return self._list("opened", MAX_TOKEN_LENGTH)

    @property
    def seen(self) -> str:
        """The token of the page; empty when it is too long."""
        sent = str(self.data.get("seen", ""))
        return sent if len(sent) <= MAX_TOKEN_LENGTH * 2 else ""

    @property
    def before(self) -> dict[str, str]:
        """The mark before its change of each changed row; empty if it joined."""
        pairs = (text.partition("~") for text in self._list("before", 80))
        return {request: mark for request, _, mark in pairs}

    def _list(self, name: str, longest: int) -> list[str]:
        texts: list[Any] = self.lists.getlist(name)[:MAX_ROWS]
        return [str(text) for text in texts if len(str(text)) <= longest]


def _parse_row(text: str) -> ShownBatchRow:
    """Parse one row. A missing version becomes 0 and a missing reading None; no such
    row exists."""
    request, mark, version, reading = [*text.split("~"), "", "", ""][:4]
    return ShownBatchRow(
        request, _parse_number(version[:9]) or 0, _parse_number(reading), mark
    )


def _parse_number(text: str) -> int | None:
    fits = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
    return int(text) if fits else None
