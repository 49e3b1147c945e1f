"""Effect classes: the closed forms that choose one from a tool's arguments. Pure.

Mail to a test address is not mail to a customer. Whatever a form does not recognise
exactly, it does not match, and what matches nothing takes the strictest class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

# A bare ASCII address: no display name, no list, no comment, no quotes, no encoding,
# and no route. Mail servers send on `a%other.example@own.example` and
# `other.example!a@own.example` to another host, and some programs take a local part
# that begins with "-" for an option.
_ADDRESS = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}@([A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]+)+)"
)
_BREAK = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Arguments that mail tools copy into the header, besides the recipients.
HEADERS = (
    "subject",
    "title",
    "from",
    "from_name",
    "sender",
    "reply_to",
    "replyTo",
    "in_reply_to",
    "references",
    "headers",
)


class Recipients(BaseModel):
    """Every recipient of these arguments is one of the addresses or at a domain.

    Compared to the letter: another case, a trailing dot, a look-alike character or a
    longer domain is somebody else. A line break in a header begins another header,
    which may name further recipients, so with a control character in one of `headers`
    nothing matches. Without `headers` these are the arguments named in `HEADERS`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipients: list[str] = Field(min_length=1)
    addresses: list[str] = []
    domains: list[str] = []
    headers: list[str] | None = None

    @model_validator(mode="after")
    def _names_somebody(self) -> Recipients:
        if not self.addresses and not self.domains:
            raise ValueError("name addresses or domains")
        return self

    @property
    def arguments(self) -> list[str]:
        return [*self.recipients, *(self.headers or ())]

    def matches(self, args: Mapping[str, Any]) -> bool:
        """False for no recipient at all: nobody is not somebody of ours."""
        headers = HEADERS if self.headers is None else self.headers
        if any(breaks_header(args.get(name)) for name in headers):
            return False
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


def breaks_header(value: Any) -> bool:
    """Whether a text in this value holds a control character or a line separator, which
    would end a header line."""
    if isinstance(value, str):
        return _BREAK.search(value) is not None
    if isinstance(value, Mapping):
        return any(breaks_header(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(map(breaks_header, value))
