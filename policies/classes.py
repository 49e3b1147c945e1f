"""Effect classes: the closed forms that choose one from a tool's arguments. Pure.

Mail to a test address is not mail to a customer. Whatever a form does not recognise
exactly, it does not match, and what matches nothing takes the strictest class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

# A bare ASCII address: no display name, no list, no comment, no quotes, no encoding.
_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]{1,64}@([A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]+)+)")


class Recipients(BaseModel):
    """Every recipient of these arguments is one of the addresses or at a domain.

    Compared to the letter: another case, a trailing dot, a look-alike character or a
    longer domain is somebody else.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipients: list[str] = Field(min_length=1)
    addresses: list[str] = []
    domains: list[str] = []

    @model_validator(mode="after")
    def _names_somebody(self) -> Recipients:
        if not self.addresses and not self.domains:
            raise ValueError("name addresses or domains")
        return self

    @property
    def arguments(self) -> list[str]:
        return self.recipients

    def matches(self, args: Mapping[str, Any]) -> bool:
        """False for no recipient at all: nobody is not somebody of ours."""
        found = list(self._found(args))
        return bool(found) and all(self._ours(address) for address in found)

    def _found(self, args: Mapping[str, Any]) -> Iterator[Any]:
        for name in self.recipients:
            value = args.get(name, [])
            yield from value if isinstance(value, list) else [value]

    def _ours(self, address: Any) -> bool:
        match = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
        if not match:
            return False
        return address in self.addresses or match[1] in self.domains


class OneOf(BaseModel):
    """The argument is exactly one of these texts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    argument: str
    one_of: list[str] = Field(min_length=1)

    @property
    def arguments(self) -> list[str]:
        return [self.argument]

    def matches(self, args: Mapping[str, Any]) -> bool:
        return args.get(self.argument) in self.one_of


_RECIPIENTS, _ONE_OF = "form: recipients", "form: one of"


def _form(value: Any) -> str:
    """Which form is meant, so that an error is about that one alone."""
    named = isinstance(value, Mapping) and "recipients" in value
    return _RECIPIENTS if named or isinstance(value, Recipients) else _ONE_OF


Form = Annotated[
    Annotated[Recipients, Tag(_RECIPIENTS)] | Annotated[OneOf, Tag(_ONE_OF)],
    Discriminator(_form),
]
