"""What a page told of a row that changed under its reader, signed, so that it is still
said at the next press and is kept with the decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.core import signing

SALT = "reviews.noted"
Whose = tuple[str, str]  # batch and person


def token(whose: Whose, request: str, mark: str, said: str) -> str:
    """For a hidden field of the row."""
    return signing.dumps([*whose, request, mark, said], salt=SALT)


def read(
    tokens: Iterable[str], whose: Whose, marks: Mapping[str, str]
) -> dict[str, str]:
    """By request, what was said of rows that still are as they were then."""
    found = {}
    for text in tokens:
        try:
            batch, person, request, mark, said = signing.loads(text, salt=SALT)
        except (signing.BadSignature, ValueError, TypeError):
            continue
        if (batch, person) == whose and marks.get(request) == mark:
            found[request] = said
    return found
