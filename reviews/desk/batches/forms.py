"""What the page of a batch sends with every press: its rows, which of them are in, what
was opened, and then a verdict."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from django import forms
from django.http import QueryDict

from reviews.choices import REASONS, Verdict

MOST = 100
LONGEST_TOKEN = 500
MOST_DIGITS = 18  # of a number that the database can hold


VERDICTS = (Verdict.APPROVE, Verdict.REJECT, Verdict.ESCALATE)


class Do(StrEnum):
    """What was pressed; some name what they are about behind a colon."""

    SELECT = "select"
    OPEN = "open"  # open:<request>
    SPLIT = "split"
    LOOK = "look"  # whether the page is still as the batch is
    REFRESH = "refresh"
    ARM = "arm"  # arm:approve, arm:reject, arm:escalate
    COMMIT = "commit"


class RowSent(NamedTuple):
    """A row as the page showed it: what it was made from, and the mark of that."""

    request: str
    mark: str
    version: int
    reading: int | None


class BatchForm(forms.Form):
    """`row` is `<request>~<mark>~<version>~<reading>` for every row, `item` the
    requests that are ticked, `opened` and `noted` the tokens of rows, `seen` that of
    the page."""

    verdict = forms.ChoiceField(
        choices=[(verdict.value, verdict.value) for verdict in VERDICTS],
        required=False,
    )
    digest = forms.CharField(max_length=80, required=False)
    reason_code = forms.ChoiceField(choices=list(REASONS.items()), required=False)
    reason = forms.CharField(max_length=2000, required=False)
    stop = forms.BooleanField(required=False)
    split = forms.CharField(max_length=20, required=False)

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data)
        self.lists = data
        self.is_valid()  # what is not valid is left out; the operation refuses it

    @property
    def do(self) -> Do:
        name, _, _ = self._pressed.partition(":")
        return Do(name) if name in set(Do) else Do.SELECT

    @property
    def argument(self) -> str:
        return self._pressed.partition(":")[2]

    @property
    def _pressed(self) -> str:
        return str(self.data.get("do", ""))[:80]

    @property
    def armed(self) -> Verdict:
        """What is to be armed; by default what lets nothing happen."""
        said = self.argument
        return Verdict(said) if said in set(VERDICTS) else Verdict.REJECT

    @property
    def meant(self) -> Verdict:
        """What was meant; refusing is harmless."""
        said = self.cleaned_data.get("verdict", "")
        return Verdict(said) if said else Verdict.REJECT

    @property
    def items(self) -> list[str]:
        return list(dict.fromkeys(self._list("item", 40)))

    @property
    def marks(self) -> dict[str, str]:
        """What each row was on the page, the rows that are not ticked too."""
        return {row.request: row.mark for row in self.rows}

    @property
    def rows(self) -> list[RowSent]:
        """Every row of the page, in no order."""
        return [_row(text) for text in self._list("row", 80)]

    @property
    def opened(self) -> list[str]:
        return self._list("opened", LONGEST_TOKEN)

    @property
    def seen(self) -> str:
        """The token of the page."""
        sent = str(self.data.get("seen", ""))
        return sent if len(sent) <= LONGEST_TOKEN * 2 else ""

    @property
    def noted(self) -> list[str]:
        return self._list("noted", LONGEST_TOKEN)

    def _list(self, name: str, longest: int) -> list[str]:
        found: list[Any] = self.lists.getlist(name)[:MOST]
        return [str(one) for one in found if len(str(one)) <= longest]


def _row(text: str) -> RowSent:
    """What does not say a version or a reading is of none that there is."""
    request, mark, version, reading = [*text.split("~"), "", "", ""][:4]
    return RowSent(request, mark, _number(version[:9]) or 0, _number(reading))


def _number(text: str) -> int | None:
    fits = text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS
    return int(text) if fits else None
