"""One input for one text, number, amount or moment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from journal.errors import FieldError, at
from reviews.desk.argument_form import values
from reviews.desk.argument_form.fields import ABSENT, GIVEN, NULL, Node
from reviews.desk.argument_form.values import BadValue
from reviews.forms.arguments import places


@dataclass(frozen=True)
class Line(Node):
    """One input for one text, number or amount."""

    kind: ClassVar[str] = "line"

    @cached_property
    def was_text(self) -> str:
        return values.shown(self.at.was)

    @cached_property
    def text(self) -> str:
        """What the input holds: as typed, else as proposed."""
        sent = self.at.sheet.text(self.name)
        return self.was_text if sent is None else sent

    @property
    def filled(self) -> bool:
        return self.text != "" and self.text != self.was_text

    @property
    def changed(self) -> bool:
        if self.at.new:
            return False  # its row counts as a whole
        if self.state != self.was_state:
            return self.state != GIVEN or bool(self.text) or self._says_so
        return self.state == GIVEN and self.text != self.was_text

    @property
    def was_said(self) -> str:
        """The proposed value in words."""
        words = {ABSENT: "not given", NULL: "null"}
        return words.get(self.was_state) or self.was_text or "empty"

    @property
    def multiline(self) -> bool:
        return values.is_long(self.at.spec, self.text)

    @property
    def input_type(self) -> str:
        return values.input_type(self.at.spec, self.text)

    @property
    def money(self) -> bool:
        return self.at.sheet.is_money(self.at.path)

    @property
    def inputmode(self) -> str:
        return values.inputmode(self.at.spec, money=self.money)

    @property
    def hint(self) -> str:
        return values.hint(self.at.spec)

    def read(self, wrong: list[FieldError]) -> Any:
        if self.state != GIVEN:
            return self.nothing()
        if self.was_state == GIVEN and self.text == self.was_text:
            return self.at.was
        if not self.text and self.was_state != GIVEN and not self._says_so:
            return self.at.was
        try:
            return self.typed()
        except BadValue as error:
            wrong.append(at(self.at.place, str(error)))
            return self.at.was

    def typed(self) -> Any:
        return values.typed(self.at.spec, self.text, money=self.money)

    @property
    def _says_so(self) -> bool:
        """An empty text counts where somebody chose that it is given."""
        sent = self.at.sheet.text(self.name + places.STATE)
        return sent == GIVEN != self.was_state


@dataclass(frozen=True)
class Moment(Line):
    """A date and time, with its zone in an input of its own."""

    kind: ClassVar[str] = "moment"

    @property
    def local(self) -> str:
        return values.shortened(self._sent[0])

    @property
    def zone(self) -> str:
        return self._sent[1]

    @property
    def was_local(self) -> str:
        return values.shortened(values.moment(self.was_text)[0])

    @property
    def was_zone(self) -> str:
        return values.moment(self.was_text)[1]

    @cached_property
    def text(self) -> str:
        return values.joined(*self._sent)

    @cached_property
    def _sent(self) -> tuple[str, str]:
        local = self.at.sheet.text(self.name)
        zone = self.at.sheet.text(self.name + places.ZONE)
        was = values.moment(self.was_text)
        return was[0] if local is None else local, was[1] if zone is None else zone
