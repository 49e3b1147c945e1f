"""What the page of a batch sends with every press: its rows, which of them are in, what
was opened, and then a verdict."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django import forms
from django.http import QueryDict

from reviews.choices import REASONS, Verdict

MOST = 100
LONGEST_TOKEN = 500


class Do(StrEnum):
    """What was pressed; some name what they are about behind a colon."""

    SELECT = "select"
    OPEN = "open"  # open:<request>
    SPLIT = "split"
    ARM = "arm"  # arm:approve, arm:reject
    COMMIT = "commit"


class BatchForm(forms.Form):
    """`row` is `<request>~<mark>` for every row, `item` the requests that are ticked,
    `opened` the tokens of opened rows."""

    verdict = forms.ChoiceField(
        choices=[(v.value, v.value) for v in (Verdict.APPROVE, Verdict.REJECT)],
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
        pairs = (row.partition("~") for row in self._list("row", 60))
        return {request: mark for request, _, mark in pairs}

    @property
    def opened(self) -> list[str]:
        return self._list("opened", LONGEST_TOKEN)

    def _list(self, name: str, longest: int) -> list[str]:
        found: list[Any] = self.lists.getlist(name)[:MOST]
        return [str(one) for one in found if len(str(one)) <= longest]
