"""Forms that choose the effect class of a call from its arguments. Pure.

For example, mail to a test address is another class than mail to a customer. A form
matches only arguments that it recognises exactly, and arguments that no form matches
get the strictest class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

# A bare ASCII address: no display name, no list, no comment, no quotes, no encoding,
# and no route. Mail servers forward `a%other.example@own.example` and
# `other.example!a@own.example` to another host, and some programs read a local part
# that begins with "-" as an option.
_ADDRESS = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}@([A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]+)+)"
)
_BREAK = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Arguments besides the recipients that mail tools copy into the header.
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
    """A form that matches when every recipient in these arguments is one of `addresses`
    or at one of `domains`.

    The comparison is exact: an address with another case, a trailing dot, a look-alike
    character or a longer domain does not match. A line break in a header starts another
    header, which may name further recipients, so the form never matches when one of the
    arguments in `headers` contains a control character. Without `headers` the usual
    header arguments are checked: subject, title, from, from_name, sender, reply_to,
    replyTo, in_reply_to, references and headers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipients: list[str] = Field(min_length=1)
    addresses: list[str] = []
    domains: list[str] = []
    headers: list[str] | None = None

    @model_validator(mode="after")
    def _names_somebody(self) -> Recipients:
        if not self.addresses and not self.domains:
            raise ValueError("set addresses or domains")
        return self

    @property
    def arguments(self) -> list[str]:
        """The arguments that this form names."""
        return [*self.recipients, *(self.headers or ())]

    def matches(self, args: Mapping[str, Any]) -> bool:
        """Whether the form matches these arguments. It does not without recipients."""
        headers = HEADERS if self.headers is None else self.headers
        if any(breaks_header(args.get(name)) for name in headers):
            return False
        addresses = list(self._found(args))
        return bool(addresses) and all(self._ours(address) for address in addresses)

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
    """A form that matches when an argument is exactly one of these texts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    argument: str
    one_of: list[str] = Field(min_length=1)

    @property
    def arguments(self) -> list[str]:
        """The argument that this form names."""
        return [self.argument]

    def matches(self, args: Mapping[str, Any]) -> bool:
        return args.get(self.argument) in self.one_of


_RECIPIENTS, _ONE_OF = "form: recipients", "form: one of"


def _choose_form(value: Any) -> str:
    """The tag of the form that is meant, so that errors are of that form alone."""
    named = isinstance(value, Mapping) and "recipients" in value
    return _RECIPIENTS if named or isinstance(value, Recipients) else _ONE_OF


Form = Annotated[
    Annotated[Recipients, Tag(_RECIPIENTS)] | Annotated[OneOf, Tag(_ONE_OF)],
    Discriminator(_choose_form),
]


def breaks_header(value: Any) -> bool:
    """Whether any text inside this value contains a control character or a line
    separator, which could end a header line."""
    if isinstance(value, str):
        return _BREAK.search(value) is not None
    if isinstance(value, Mapping):
        return any(breaks_header(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(map(breaks_header, value))
