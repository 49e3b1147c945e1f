"""The form of what the decision panel offers in a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django import forms
from django.forms import BoundField

from journal.errors import DomainError, StaleVersion
from reviews.administration.queue_presets import (
    LONGEST_TEXT,
    MOST_TEXTS,
    OfferedPreset,
    Reasons,
)
from reviews.choices import REASON_LABELS, VERDICT_SPECS, ReasonCode, Verdict

from ..components.choice import VERDICT_WORDINGS
from ..forms import TextField
from ..people.forms import SteppedUpForm

LARGEST_NUMBER = 99


@dataclass(frozen=True, slots=True)
class VerdictColumn:
    """One verdict as a column of the form."""

    verdict: Verdict
    label: str
    error: str


class PresetCell(NamedTuple):
    """A field of the form; None where the reason does not fit the verdict."""

    column: VerdictColumn
    field: BoundField | None


class PresetForm(SteppedUpForm):
    """A number for each reason of each verdict: where it stands in the panel, empty
    where it is not offered. And ready texts for the note."""

    shown = TextField(max_length=400, required=False)  # what the page was drawn from

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for verdict, spec in VERDICT_SPECS.items():
            for code in spec.reasons:
                self.fields[_name_place(verdict, code)] = forms.IntegerField(
                    required=False,
                    min_value=1,
                    max_value=LARGEST_NUMBER,
                    label=REASON_LABELS[code],
                )
        for number in range(MOST_TEXTS):
            self.fields[f"texts.{number}"] = TextField(
                required=False, max_length=LONGEST_TEXT
            )

    @property
    def columns(self) -> list[VerdictColumn]:
        """The verdicts, each with the first error at its reasons."""
        return [
            VerdictColumn(verdict, wording.verb, self._find_error(verdict))
            for verdict, wording in VERDICT_WORDINGS.items()
        ]

    def _find_error(self, verdict: Verdict) -> str:
        codes = VERDICT_SPECS[verdict].reasons
        errors = [e for code in codes for e in self[_name_place(verdict, code)].errors]
        return str(errors[0]) if errors else ""

    @property
    def rows(self) -> list[tuple[str, list[PresetCell]]]:
        """The label of each reason, and its field of each verdict."""
        columns = self.columns
        return [
            (
                REASON_LABELS[code],
                [PresetCell(at, self._find_field(at.verdict, code)) for at in columns],
            )
            for code in ReasonCode
        ]

    def _find_field(self, verdict: Verdict, code: ReasonCode) -> BoundField | None:
        fits = code in VERDICT_SPECS[verdict].reasons
        return self[_name_place(verdict, code)] if fits else None

    @property
    def text_fields(self) -> list[BoundField]:
        return [self[f"texts.{number}"] for number in range(MOST_TEXTS)]

    @property
    def reasons(self) -> Reasons:
        """The chosen reasons of a valid form, in the order of their numbers."""
        return {
            verdict: self._order_codes(verdict, spec.reasons)
            for verdict, spec in VERDICT_SPECS.items()
        }

    def _order_codes(
        self, verdict: Verdict, codes: Sequence[ReasonCode]
    ) -> list[ReasonCode]:
        places = {code: self.cleaned_data[_name_place(verdict, code)] for code in codes}
        offered = [code for code in codes if places[code] is not None]
        return sorted(offered, key=lambda code: places[code])

    @property
    def texts(self) -> list[str]:
        return [
            self.cleaned_data[f"texts.{number}"].replace("\r\n", "\n")
            for number in range(MOST_TEXTS)
        ]

    def add_refusal(self, refusal: DomainError) -> None:
        """Show an error of a verdict at the first of its reasons. What changed since
        the page was drawn stands above the form."""
        if isinstance(refusal, StaleVersion):
            return
        for error in refusal.errors:
            name, message = error["path"], error["message"]
            part, _, verdict = name.partition(".")
            if part == "reasons":
                first = VERDICT_SPECS[Verdict(verdict)].reasons[0]
                name = _name_place(Verdict(verdict), first)
            words = f"{message[:1].upper()}{message[1:]}."
            self.add_error(name if name in self.fields else None, words)
        if not refusal.errors:
            self.add_error(None, refusal.detail)


def build_initial(preset: OfferedPreset) -> Mapping[str, Any]:
    """The form's values for what is offered now."""
    places = {
        _name_place(verdict, code): place
        for verdict in VERDICT_SPECS
        for place, code in enumerate(preset.list_reasons(verdict), start=1)
    }
    texts = {f"texts.{i}": ready.text for i, ready in enumerate(preset.texts)}
    return {**places, **texts}


def _name_place(verdict: Verdict, code: ReasonCode) -> str:
    return f"place.{verdict}.{code}"
