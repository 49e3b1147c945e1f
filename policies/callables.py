"""Which Python functions a policy may name. A policy is data: whoever writes one must
not thereby run whatever is installed, so the deployment says what may be called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.conf import settings
from pydantic import BaseModel

from journal.errors import FieldError, at

from .documents import CallableTarget, CallableVerifier, Document, LookUp

SHIPPED = "reviews.verifier_rules"
RULE = "HOLDPOINT_CALLABLES does not list the module of {}"


def is_listed(path: str) -> bool:
    """Whether the function is in a shipped or a listed module, or below one."""
    name = path.replace(":", ".")
    listed = (SHIPPED, *settings.HOLDPOINT.callables)
    return any(name.startswith(f"{prefix}.") for prefix in listed)


def unlisted(document: Document) -> list[FieldError]:
    """Every function of the document that may not be called, by its path."""
    return [
        at(path, RULE.format(named))
        for path, named in _named(document, "")
        if not is_listed(named)
    ]


def _named(part: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(part, CallableTarget | CallableVerifier | LookUp) and part.path:
        yield path, part.path
    for name, inner in _members(part):
        yield from _named(inner, f"{path}.{name}".lstrip("."))


def _members(part: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(part, BaseModel):
        return [(name, getattr(part, name)) for name in type(part).model_fields]
    if isinstance(part, Mapping):
        return part.items()
    return enumerate(part) if isinstance(part, list) else ()
