"""The effect sentence of a tool that has none of its own: its title, then what its
arguments are called. Pure.

`Issue credit: 89.00 USD to customer c-1 with note late`. Every argument is named, up to
`MOST_NAMED`: nothing that a call does is left out of its title without a sign.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from .sentences import Chip, Piece, Quote, Segment

# The best first.
AMOUNTS = ("amount", "total", "sum", "price", "amount_minor", "amount_cents")
CURRENCIES = ("currency", "currency_code")
LEADS = (
    *("command", "cmd", "argv", "statement", "sql", "query", "url", "uri"),
    *("path", "file_path", "filename", "file"),
)
# Those that say no more than that they receive it, then those whose name says more.
_PLAIN_RECIPIENTS = (
    *("to", "recipient", "recipients", "payee", "beneficiary", "email", "emails"),
)
RECIPIENTS = (
    *_PLAIN_RECIPIENTS,
    *("customer", "customer_id", "account", "account_id", "user", "user_id"),
)
MOST_NAMED = 6  # further arguments
LONGEST_QUOTE = 80  # characters of what the agent calls the tool
_SPACES = re.compile(r"\s+")
# Where a word ends in issueCredit, HTTPRequest and v2Export.
_JOINTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def build_usual_sentence(
    title: str,
    arguments: Sequence[str],
    required: Collection[str],
    *,
    roles: Mapping[str, str] = {},
    money: tuple[str, str] | None = None,
    quote: str = "",
) -> tuple[Piece, ...]:
    """The parsed sentence for arguments with these names. `roles` are those of the
    tool's view; `money` is a declared amount with its currency; `quote` is what the
    agent calls the tool, where its name says too little."""
    pieces: list[Piece] = [title]
    if quote:
        pieces += [" “", Quote(quote), "”"]
    left = list(arguments)

    def add_part(words: str, *names: str) -> None:
        chips = [Chip(name, name not in required) for name in names if name in left]
        parts = [part for chip in chips for part in (" ", chip)]
        if parts:
            pieces.append(Segment((words, *parts)))
        left[:] = [name for name in left if name not in names]

    pair = money or (_find_first(AMOUNTS, left), _find_first(CURRENCIES, left))
    lead = _find_first((*_list_leads(roles), *LEADS), left)
    if pair[0]:
        add_part(":", *pair)
    elif lead:
        add_part(":", *(["method", lead] if lead in {"url", "uri"} else [lead]))
    reached = (roles.get("payee", ""), roles.get("to", ""), *RECIPIENTS)
    if recipient := _find_first(reached, left):
        plain = recipient in _PLAIN_RECIPIENTS
        add_part(" to" if plain else f" to {_to_words(recipient)}", recipient)
    rest = [Chip(name, True, True) for name in left[:MOST_NAMED]]
    more = " and more" if len(left) > MOST_NAMED else ""
    return (*pieces, *(part for chip in rest for part in (" ", chip)), more)


def build_title(name: str) -> str:
    """The name of a tool in words: `issue_credit` and `issueCredit` as `Issue credit`,
    `mcp__github__create_issue` as `Create issue (github)`, `payments.refund` as `Refund
    (payments)`."""
    *around, last = [
        part for part in re.split(r"__+|\.", name) if part.strip("_-")
    ] or [name]
    if len(around) > 1 and around[0].casefold() == "mcp":
        del around[0]
    words = _split_words(last)
    title = words[:1].upper() + words[1:] or name
    return f"{title} ({', '.join(map(_split_words, around))})" if around else title


def shorten_description(text: str) -> str:
    """The first sentence of a tool's description, for a title; empty without one, and
    where it is too long for a title."""
    first = _SPACES.sub(" ", text.strip().partition("\n\n")[0])
    sentence = re.split(r"(?<=[.!?]) ", first, maxsplit=1)[0].rstrip(".")
    return sentence if len(sentence) <= LONGEST_QUOTE else ""


def is_plain(name: str) -> bool:
    """Whether the name of a tool is a single word, which says little of what it
    does."""
    return len(_split_words(re.split(r"__+|\.", name)[-1]).split()) < 2


def _split_words(name: str) -> str:
    """The words of a name, in lower case except for abbreviations."""
    words = _JOINTS.sub(" ", re.sub(r"[_-]+", " ", name)).split()
    return " ".join(w if len(w) > 1 and w.isupper() else w.lower() for w in words)


def _list_leads(roles: Mapping[str, str]) -> list[str]:
    names = ("command", "argv", "statement", "url", "path")
    return [roles[role] for role in names if role in roles]


def _find_first(names: Sequence[str], arguments: Collection[str]) -> str:
    return next((name for name in names if name in arguments), "")


def _to_words(name: str) -> str:
    return name.removesuffix("_id").replace("_", " ")
