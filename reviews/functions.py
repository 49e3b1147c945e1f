"""Python functions that a policy names: `package.module.function`, or with a colon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.module_loading import import_string


def load(path: str) -> Callable[..., Any]:
    """The function at `path`. Raises `ImportError`, or what its module raises."""
    function = import_string(path.replace(":", "."))
    if not callable(function):
        raise ImportError(f"{path} is not a function")
    return function  # type: ignore[no-any-return]
