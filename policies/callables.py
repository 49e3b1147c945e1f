"""Check and import the Python functions that a policy names
(`package.module.function` or `package.module:function`).

A policy is data: its author must not be able to run any function that happens to be
installed. So the deployment lists the modules that a policy may call
(COUNTERSEAL_CALLABLES).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string
from pydantic import BaseModel

from .documents import CallableTarget, CallableVerifier, Document, LookUp, suggest_name
from .documents.wording import Problem

CallablePart = CallableTarget | CallableVerifier | LookUp

SHIPPED_MODULE = "reviews.verifier_rules"
NOT_LISTED_TEXT = (
    "COUNTERSEAL_CALLABLES does not list the module of {}: add it there, or name"
    " another"
)


class CallableNotListed(ImportError):
    """The deployment does not list the function's module, so no policy may call it."""


def is_listed(path: str) -> bool:
    """Whether the function is in a shipped or listed module, or in a part of one."""
    name = path.replace(":", ".")
    listed = (SHIPPED_MODULE, *settings.COUNTERSEAL.callables)
    return any(name.startswith(f"{prefix}.") for prefix in listed)


def load_function(path: str) -> Callable[..., Any]:
    """Import the function at `path`. Raises `CallableNotListed` before it imports
    anything, `ImportError`, or any exception that importing the module raises."""
    if not is_listed(path):
        raise CallableNotListed(NOT_LISTED_TEXT.format(path))
    function = import_string(path.replace(":", "."))
    if not callable(function):
        raise ImportError(f"{path} is not a function")
    return function  # type: ignore[no-any-return]


def list_problems(document: Document) -> Iterator[Problem]:
    """A problem, as (path, message), for each function of the document that is not
    listed, does not exist, or does not accept its options. Imports the listed
    modules."""
    for path, part in _list_named_functions(document, ""):
        if wrong := _describe_problem(part):
            yield path, wrong


def _describe_problem(part: CallablePart) -> str:
    named = part.path or ""
    if not is_listed(named):
        return NOT_LISTED_TEXT.format(named)
    module, _, name = named.replace(":", ".").rpartition(".")
    try:
        function = getattr(import_module(module), name, None)
    except Exception as error:  # importing a module can raise anything
        return f"{module} cannot be imported here ({type(error).__name__})"
    if not callable(function):
        known = [n for n, v in vars(import_module(module)).items() if callable(v)]
        return f"{module} has no function {name}{suggest_name(name, known, most=0)}"
    return (
        _describe_options_problem(function, part)
        if isinstance(part, CallableVerifier)
        else ""
    )


def _describe_options_problem(function: Any, verifier: CallableVerifier) -> str:
    """Why the function cannot be called as a verifier, with the sealed request, a stage
    and its options; empty when it can."""
    try:
        inspect.signature(function).bind({}, stage="decision", **verifier.options)
    except TypeError as error:
        return f"{verifier.path} does not take these options: {error}"
    except ValueError:
        return ""  # a function without a signature, such as some built-in ones
    return ""


def _list_named_functions(part: Any, path: str) -> Iterator[tuple[str, CallablePart]]:
    if isinstance(part, CallableTarget | CallableVerifier | LookUp) and part.path:
        yield path, part
    for name, inner in _list_members(part):
        yield from _list_named_functions(inner, f"{path}.{name}".lstrip("."))


def _list_members(part: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(part, BaseModel):
        return [(name, getattr(part, name)) for name in type(part).model_fields]
    if isinstance(part, Mapping):
        return part.items()
    return enumerate(part) if isinstance(part, list) else ()
