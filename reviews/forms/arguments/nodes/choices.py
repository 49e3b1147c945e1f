"""One of a closed set, as a select."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from journal.errors import FieldError, at
from reviews.desk.argument_form import values
from reviews.desk.argument_form.fields import ABSENT, NULL, STATES, Node, Option
from reviews.desk.argument_form.schema import MISSING, same


@dataclass(frozen=True)
class Choice(Node):
    """One of a closed set; being left out and null are choices among the others."""

    kind: ClassVar[str] = "choice"

    @cached_property
    def choices(self) -> list[tuple[str, str, Any]]:
        found = values.options(self.at.spec)
        if self.at.new and self.at.required:
            found.insert(0, ("", "Choose", MISSING))
        elif ABSENT in self.states:
            found.insert(0, ("", STATES[ABSENT], MISSING))
        if NULL in self.states:
            found.append(("#null", STATES[NULL], None))
        return found

    @cached_property
    def was_text(self) -> str:
        return next(
            (text for text, _, item in self.choices if same(item, self.at.was)), ""
        )

    @cached_property
    def text(self) -> str:
        sent = self.at.sheet.text(self.name)
        return self.was_text if sent is None else sent

    @property
    def was_said(self) -> str:
        return next((words for t, words, _ in self.choices if t == self.was_text), "")

    @property
    def changed(self) -> bool:
        return not self.at.new and self.text != self.was_text

    @property
    def options(self) -> list[Option]:
        return [Option(t, words, t == self.text) for t, words, _ in self.choices]

    @property
    def state_options(self) -> list[Option]:
        return []

    def read(self, wrong: list[FieldError]) -> Any:
        if self.text == self.was_text:
            return self.at.was
        for text, _, item in self.choices:
            if text == self.text:
                return item
        wrong.append(at(self.at.place, "choose one of the list"))
        return self.at.was
