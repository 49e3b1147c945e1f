"""The arguments of a Python function as JSON: their schema, and both ways between them.

A call is checked against the function's annotations before it is proposed, and again
after a reviewer may have edited it. Both checks are strict: the text "1" is not a
number, and an argument that the function does not have is refused.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from .errors import FieldError, InvalidArguments
from .models import list_field_errors

_STRICT = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=False)
_VALUE = "value"


class Signature(Protocol):
    """What a tool takes and returns, as JSON. The methods are those of
    `ToolSignature`."""

    @property
    def names(self) -> tuple[str, ...]: ...
    def build_schema(self) -> dict[str, Any]: ...
    def bind_arguments(self, *args: Any, **kwargs: Any) -> dict[str, Any]: ...
    def dump_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]: ...
    def load_arguments(self, args: Mapping[str, Any]) -> dict[str, Any]: ...
    def dump_result(self, result: Any) -> dict[str, Any]: ...
    def load_result(self, result: Mapping[str, Any] | None) -> Any: ...


class ToolSignature:
    """What a function takes and returns.

    Raises TypeError for a function whose arguments have no names or no types.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self._signature = inspect.signature(function)
        hints = typing.get_type_hints(function, include_extras=True)
        # A field may not be called like an attribute of BaseModel, an argument may.
        self._fields = {name: f"argument_{name}" for name in self._signature.parameters}
        definitions: dict[str, Any] = {
            self._fields[parameter.name]: _define_field(name, parameter, hints)
            for parameter in self._signature.parameters.values()
        }
        self._model: type[BaseModel] = create_model(
            name, __config__=_STRICT, **definitions
        )
        self._returned = _build_adapter(hints.get("return", Any))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""
        return tuple(self._fields)

    def build_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, as the policy's `schema` has it."""
        schema = self._model.model_json_schema()
        return {key: value for key, value in schema.items() if key != "title"}

    def bind_arguments(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arguments of a Python call as JSON. Raises InvalidArguments."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidArguments(self.name, [FieldError("", str(error))]) from None
        return self.dump_arguments(bound.arguments)

    def dump_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check arguments, as Python objects or as JSON, and return them as JSON.

        Defaults are included, so that people approve every value that is used. An
        argument that is None by default and None here is left out. Raises
        InvalidArguments.
        """
        checked = self._validate(arguments)
        dumped: dict[str, Any] = checked.model_dump(mode="json", by_alias=True)
        absent = {
            name
            for name, parameter in self._signature.parameters.items()
            if parameter.default is None and dumped[name] is None
        }
        return {name: value for name, value in dumped.items() if name not in absent}

    def load_arguments(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for the function, from approved JSON. Raises
        InvalidArguments."""
        try:
            checked = self._model.model_validate_json(json.dumps(args))
        except ValidationError as error:
            raise InvalidArguments(self.name, list_field_errors(error)) from None
        return {name: getattr(checked, field) for name, field in self._fields.items()}

    def _validate(self, arguments: Mapping[str, Any]) -> BaseModel:
        """Accept Python objects, or else what is valid as JSON: "1.10" for a Decimal.
        The errors are those of the first try."""
        try:
            return self._model.model_validate(dict(arguments))
        except ValidationError as error:
            with suppress(ValidationError, PydanticSerializationError):
                content = to_json(dict(arguments))
                return self._model.model_validate_json(content)
            raise InvalidArguments(self.name, list_field_errors(error)) from None

    def dump_result(self, result: Any) -> dict[str, Any]:
        """The JSON object that is reported as the result. What is no object, or could
        be taken for a wrapped one, is wrapped as `{"value": ...}`."""
        try:
            dumped = self._returned.dump_python(result, mode="json", warnings=False)
        except PydanticSerializationError:
            # The effect has happened: a result that is not JSON must not hide that.
            dumped = to_jsonable_python(result, fallback=str)
        if isinstance(dumped, dict) and set(dumped) != {_VALUE}:
            return dumped
        return {_VALUE: dumped}

    def load_result(self, result: Mapping[str, Any] | None) -> Any:
        """The function's result from a reported one. What does not fit the annotation,
        such as the result of a tool that the gate performs, is returned as it is."""
        found: Any = result
        if result is not None and set(result) == {_VALUE}:
            found = result[_VALUE]
        try:
            return self._returned.validate_json(json.dumps(found))
        except ValidationError:
            return found


def _define_field(
    tool: str, parameter: inspect.Parameter, hints: Mapping[str, Any]
) -> tuple[Any, Any]:
    """The type and the default of an argument, for pydantic."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise TypeError(
            f"{tool}: people cannot approve *{parameter.name}: name each argument"
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise TypeError(f"{tool}: {parameter.name} needs a name: remove the `/`")
    if parameter.name not in hints:
        raise TypeError(f"{tool}: {parameter.name} needs a type annotation")
    if parameter.default is parameter.empty:
        return hints[parameter.name], Field(alias=parameter.name)
    return hints[parameter.name], Field(parameter.default, alias=parameter.name)


def _build_adapter(annotation: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation)
    except PydanticSchemaGenerationError:
        return TypeAdapter(Any)


def build_call_key(thread: str, call_id: str) -> str:
    """The idempotency key of one call of a tool in one thread: letters only, so that it
    looks like no personal data, whatever the call id is."""
    digest = hashlib.sha256(json.dumps([thread, call_id]).encode()).hexdigest()
    return "call-" + "".join(chr(ord("a") + int(digit, 16)) for digit in digest[:40])


def build_call_id(tool: str, args: Mapping[str, Any], number: int) -> str:
    """A call id from what is called: the same call of a repeated run gets the same id.
    `number` counts equal calls within one run, from 1."""
    text = json.dumps([tool, args], sort_keys=True)
    return f"{hashlib.sha256(text.encode()).hexdigest()}:{number}"
