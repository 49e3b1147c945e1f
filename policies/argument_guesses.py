"""Which view fits the arguments of a tool that nobody has declared, by their names and
by the shape of their values. Pure.

A guess says how a call is shown. It lowers no authority: what a view cannot decode
escalates, and an amount only adds to what the rules know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from . import money
from .documents.usual_sentences import AMOUNTS, CURRENCIES

PLAIN = "record"  # the view where nothing can be guessed
_ADDRESS = re.compile(r"[^\s@<>]{1,64}@[^\s@<>]{1,255}|[^<>]{0,100}<[^\s@]+@[^\s@]+>")
_SQL = re.compile(
    r"\s*(?:select|insert|update|delete|create|alter|drop|truncate|merge|with|grant"
    r"|revoke)\s",
    re.IGNORECASE,
)
_WEB = re.compile(r"https?://", re.IGNORECASE)
_BLOB = re.compile(r"\S{200,}")
_IN_MINOR_UNITS = ("_minor", "_cents")


class GuessedView(NamedTuple):
    """A view, which argument has which of its roles, and the amount with its currency
    as `money` of a tool declares them."""

    presenter: str = PLAIN
    shown: Mapping[str, str] = {}
    money: Sequence[Mapping[str, str]] = ()

    @property
    def paths(self) -> frozenset[str]:
        """The arguments that the guess is about."""
        pairs = [pair[name] for pair in self.money for name in ("amount", "currency")]
        return frozenset([*self.shown.values(), *pairs])


def guess_view(args: Mapping[str, Any]) -> GuessedView:
    """The view of a call with these arguments. Text that nobody could read is left to
    the plain view."""
    pair = _guess_money(args)
    if not any(isinstance(v, str) and _BLOB.search(v) for v in args.values()):
        for presenter, guess in _GUESSES.items():
            if shown := guess(args):
                return GuessedView(presenter, shown, pair)
    return GuessedView("money" if pair else PLAIN, money=pair)


def _guess_money(args: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    """A decimal text, or a whole number that is named for minor units, with a code."""
    currency = _find(args, CURRENCIES, lambda value: isinstance(value, str))
    for name in AMOUNTS if currency else ():
        minor = name.endswith(_IN_MINOR_UNITS)
        parse = money.parse_minor if minor else money.parse
        try:
            parse(args.get(name), args[currency])
        except money.InvalidMoney:
            continue
        pair = {"amount": name, "currency": currency}
        return ({**pair, "unit": "minor"} if minor else pair,)
    return ()


def _guess_sql(args: Mapping[str, Any]) -> Mapping[str, str]:
    return _name(statement=_find(args, ("statement", "sql", "query"), _is_sql))


def _guess_command(args: Mapping[str, Any]) -> Mapping[str, str]:
    if argv := _find(args, ("argv",), _is_list_of(lambda part: True)):
        return {"argv": argv}
    return _name(command=_find(args, ("command", "cmd"), _is_text))


def _guess_web_request(args: Mapping[str, Any]) -> Mapping[str, str]:
    url = _find(args, ("url", "uri"), _is_web)
    method = _find(args, ("method", "verb"), _is_text)
    return {"url": url, "method": method} if url and method else {}


def _guess_file(args: Mapping[str, Any]) -> Mapping[str, str]:
    path = _find(args, ("path", "file_path", "filename", "file"), _is_text)
    content = _find(args, ("content", "contents", "text"), _is_text)
    patch = _find(args, ("patch", "diff"), _is_text)
    if not path or not (content or patch):
        return {}
    return {"path": path, **_name(content=content, patch=patch)}


def _guess_mail(args: Mapping[str, Any]) -> Mapping[str, str]:
    names = ("to", "recipients", "recipient", "email", "to_email", "emails")
    to = _find(args, names, _is_address)
    body = _find(args, ("body", "text", "message", "html", "content"), _is_text)
    return {"to": to, "body": body} if to and body else {}


def _guess_message(args: Mapping[str, Any]) -> Mapping[str, str]:
    to = _find(args, ("channel", "room"), _is_text)
    body = _find(args, ("text", "message", "body", "content"), _is_text)
    return {"to": to, "body": body} if to and body else {}


_GUESSES: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, str]]] = {
    "sql": _guess_sql,
    "shell": _guess_command,
    "http": _guess_web_request,
    "file": _guess_file,
    "email": _guess_mail,
    "message": _guess_message,
}


def _find(
    args: Mapping[str, Any], names: Sequence[str], fits: Callable[[Any], bool]
) -> str:
    return next((name for name in names if name in args and fits(args[name])), "")


def _name(**roles: str) -> Mapping[str, str]:
    return {role: name for role, name in roles.items() if name}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_sql(value: Any) -> bool:
    return isinstance(value, str) and _SQL.match(value) is not None


def _is_web(value: Any) -> bool:
    return isinstance(value, str) and _WEB.match(value) is not None


def _is_address(value: Any) -> bool:
    if isinstance(value, str):
        return _ADDRESS.fullmatch(value.strip()) is not None
    return _is_list_of(_is_address)(value)


def _is_list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        parts = value if isinstance(value, list) else ()
        return bool(parts) and all(isinstance(p, str) and fits(p) for p in parts)

    return check
