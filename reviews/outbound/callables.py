"""Python functions that a policy names: `package.module.function`, or with a colon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.module_loading import import_string

from policies import callables


class NotListed(ImportError):
    """The deployment does not let a policy call this."""


def load(path: str) -> Callable[..., Any]:
    """The function at `path`. Raises `NotListed` before anything is imported,
    `ImportError`, or what its module raises."""
    if not callables.is_listed(path):
        raise NotListed(callables.RULE.format(path))
    function = import_string(path.replace(":", "."))
    if not callable(function):
        raise ImportError(f"{path} is not a function")
    return function  # type: ignore[no-any-return]
