"""Loads the Python functions that a policy names: `package.module.function` or
`package.module:function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.module_loading import import_string

from policies import callables


class CallableNotListed(ImportError):
    """The deployment does not list the function's module, so a policy may not call
    it."""


def load_function(path: str) -> Callable[..., Any]:
    """Import the function at `path`. Raises `CallableNotListed` before it imports
    anything, `ImportError`, or any exception that importing the module raises."""
    if not callables.is_listed(path):
        raise CallableNotListed(callables.NOT_LISTED_TEXT.format(path))
    function = import_string(path.replace(":", "."))
    if not callable(function):
        raise ImportError(f"{path} is not a function")
    return function  # type: ignore[no-any-return]
