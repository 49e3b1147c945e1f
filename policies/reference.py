"""Generates docs/policy-reference.md and the JSON Schema of the policy document from
its pydantic models.

The description of a part is its model's docstring, and that of a field is the comment
above it or beside it in the source.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from enum import StrEnum
from typing import Any, get_args

from pydantic import BaseModel

from . import conditions
from .calendars import format_duration
from .documents import Document
from .documents.argument_roles import PRESENTERS, ROLES

HEAD = """# The policy document

Printed by `manage.py policy_reference --write`; do not edit. A policy is a YAML file.
`manage.py load_policy` loads it and `manage.py try_policy` tries it on a file of calls.
Editors validate it against `policy.schema.json` in this folder. Durations are `90s`,
`30m`, `24h`, `7d`. `--set NAME=VALUE` replaces `${NAME}` in any string. An unknown key
is refused, with its line and what to write instead.
"""
READERS = """## The reader's contract

A tool's `reader` returns the state of the business before the effect. Counterseal calls
it when an action is proposed or edited, when a person claims the request, and before
the effect. It must answer within two seconds and is never called inside a transaction.
A webhook receives `{tool, args, agent, thread}`. A Python function receives `args`, and
those of `tool`, `agent` and `thread` that it names as parameters. Both return an
object:

| member | meaning |
| --- | --- |
| `before` | the current record, an object that is compared with the arguments; null \
when there is none |
| `keys` | the aggregation keys that `keys` declares, strings of 1 to 200 \
characters; a missing key blocks the proposal |
| `facts` | single values that rules read as `before.<name>` where `facts` \
declares them, and that views show; a string with `<name>_currency` beside it is money |
| `preconditions` | what must still hold before the effect: an etag, \
a row version, a balance |
| `labels` | the labels of the fields of `before` on the page |
| `source` | the name of the system that was read, for the page |

A string that consists of a timestamp with an offset (`2026-11-23T16:29:18Z`) or of a
date is shown as time and date. For a fact at the top of a page (`review.facts`) the
page also shows its distance from the time of the reading. If its name ends in `until`,
the page shows how much time is left or that it has passed.
After any other shape, an error or a time-out the reading has no values, and the page
shows why.
`reader: {tool: get_file, args: {file_id: $args.file_id}}` calls a tool that only reads
(tier auto, low risk, blast radius 1, keyed) through its own executor, without a grant.
Its result is `before`. Each declared key, fact and precondition is the member of the
result with the same name, or the one that `take: {owner: $result.owner.id}` names.

`dry_run` is called in the same way with `dry_run: true` and returns `{says, source}`:
what the effect would do, as a string, a list of strings or an object.
"""
MONEY = """## Money, ceilings and sums

`money` names pairs of plain arguments, `amounts` all other money of a tool:

```yaml
amounts:
  - {path: "items[*].price", currency: "items[*].currency", times: "items[*].quantity"}
  - {path: shipping.cost, currency: USD}
  - {fact: order_total}     # from the reader, with order_total_currency beside it
```

What a call means that leaves an amount out stands in the policy. Without it a policy is
refused whose schema lets a call leave the argument out, send null or an empty list:

```yaml
money:
  - {amount: amount, currency: currency, absent: all, whole: order_left}
  - {amount: fee, currency: currency, absent: none}
```

- `absent: none`: it moves nothing. The page says "amount not given", and
  `money.amount_minor` is 0 where the call moves nothing else.
- `absent: all`: it moves everything, as a refund without an amount refunds the whole
  payment. That is more than any ceiling, limit or figure: nobody with a ceiling can
  decide it alone, it joins no batch, and a rule that compares `args.<name>` or
  `money.amount_minor` holds as for the largest amount. A rule that tests whether the
  argument is there sees the call as it was sent. The page says "the whole amount".
- `whole` names the fact of the reader that says how much everything is, with
  `<name>_currency` beside it. It then counts as that amount. Where the reader does not
  give the fact, it counts as more than any figure.
- An amount of zero is an amount: forbid it in the schema where a tool takes zero for
  everything.

`unit: minor` declares an integer in the smallest unit of its currency, as many payment
services take it: `{amount: amount, currency: currency, unit: minor}`, or under
`amounts` `{path: amount, currency: INR, unit: minor}` where a call names no currency.
4200 is 42.00 USD, 4200 JPY and 4.200 KWD. Pages and mails show the currency's own
units, the form for changes takes them or says that it takes minor units, and rules read
`args.<name>` as the integer it is.


- Counterseal adds all amounts of a call. The total applies to `money.amount_minor` and
  `money.currency` in rules, `critical_above`, `limits`, the ceilings of people and of
  batches, and every measure with an `amount` (unless it has `alone: true`). The page
  shows the total. A person's ceiling applies to each item of a batch; the batch's own
  `total` limits what one decision may move.
- Amounts in several currencies are not added up. Such a proposal escalates with the
  rule `money.unknown_currency`, nobody with a ceiling can decide it, and it joins no
  batch. `money.currency` is then empty, and `money.amount_minor` is the part in the
  policy's currency. While it is in the window of a sum, later proposals with the same
  key escalate too.
- A fact that the reader does not return, or that is not an amount, blocks the proposal
  (`amount.unresolved`). A missing key blocks it too (`key.unresolved`). An argument
  that is not money is refused with 422.
- A measure counts proposals that are pending, in progress, executed, or may have been
  executed. The window of an executed one begins at its effect; a pending one is in
  every window. Proposals that were refused, rejected or withdrawn or that expired no
  longer count, nor do effects that Counterseal performed and whose service reported a
  failure. An effect that the agent performed and reported as failed counts until the
  tool's look-up finds that it never happened. An unknown result counts until a look-up
  or a person settles it.
- A new measure begins empty when its policy is activated: proposals under an earlier
  policy are not added to it. Until its window has passed once, let a rule demand more
  than the sum alone would. A measure that keeps its name keeps what it has counted, in
  the way in which it was counted then.
"""
SENTENCES = """## The effect sentence

`{amount}` is a required argument. `{recipient?}` is an optional one: when a call has
it, the sentence shows `with recipient ...`, after its label, otherwise nothing.
`[ to {recipient?}]` shows the text in brackets only when the argument is present.
`{...}` is replaced by every optional argument that is not named elsewhere.
`{before.owner}` is a fact of the reader that `facts` declares. When the reader did not
return it, the sentence shows `(not known)`; with `[ of {before.owner?}]` it shows
nothing.
The parts of an object are in the order of its schema's `required`, the others after
them; `line2` follows `line1`.
"""
_TYPE_NAMES: Mapping[type, str] = {
    str: "text",
    bool: "true | false",
    int: "whole number",
    timedelta: "duration",
    date: "date",
}
_FIELD = re.compile(r"^    (\w+): ")


def render_schema() -> str:
    """The JSON Schema of a policy document, as text for docs/policy.schema.json."""
    schema = Document.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    _relax_required_keys(schema)
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def _relax_required_keys(schema: dict[str, Any]) -> None:
    """Make two keys optional that the models add by themselves: a tool's name, which is
    its key, and the kind of a ToolReader."""
    tool = schema["$defs"]["ToolDefinition"]
    tool["required"].remove("name")
    reader = schema["$defs"]["ToolReader"]
    reader["required"].remove("kind")


def render_page() -> str:
    """The text of docs/policy-reference.md."""
    parts = [HEAD, *(_render_part(model) for model in _list_models())]
    return "\n".join(
        [*parts, MONEY, SENTENCES, READERS, _render_views(), _render_variables()]
    )


def _list_models() -> list[type[BaseModel]]:
    """The document's model, then those of its parts, depth first in field order."""
    models: dict[type[BaseModel], None] = {}
    _collect_models(Document, models)
    return list(models)


def _collect_models(annotation: Any, models: dict[type[BaseModel], None]) -> None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation in models:
            return
        models[annotation] = None
        for field in annotation.model_fields.values():
            _collect_models(field.annotation, models)
    for inner in get_args(annotation):
        _collect_models(inner, models)


def _render_part(model: type[BaseModel]) -> str:
    comments = _read_comments(model)
    rows = [
        f"| `{field.alias or name}` | {_format_type(field)} | "
        f"{_format_default(field)} | {comments.get(name, '')} |"
        for name, field in model.model_fields.items()
    ]
    lines = ["| key | value | default | |", "| --- | --- | --- | --- |", *rows]
    title = "The document" if model is Document else model.__name__
    return "\n".join([f"## {title}\n", inspect.getdoc(model) or "", "", *lines, ""])


def _format_type(field: Any) -> str:
    text = re.sub(r"[\w]+\.", "", _describe_annotation(field.annotation))
    return f"`{text}`".replace("|", "or")


def _describe_annotation(annotation: Any) -> str:
    inner = get_args(annotation)
    if isinstance(annotation, type) and not inner:
        return _describe_class(annotation)
    origin = getattr(annotation, "__origin__", None)
    if hasattr(annotation, "__metadata__"):
        return _describe_annotation(inner[0])
    if origin is not None and getattr(origin, "__name__", "") == "Literal":
        return " | ".join(str(choice) for choice in inner)
    if str(annotation).startswith("typing.Literal"):
        return " | ".join(str(choice) for choice in inner)
    if origin in (list, dict):
        return f"{origin.__name__} of {', '.join(map(_describe_annotation, inner))}"
    return (
        " | ".join(_describe_annotation(p) for p in inner if p is not type(None))
        or "any"
    )


def _describe_class(kind: type) -> str:
    if issubclass(kind, StrEnum):
        return " | ".join(kind)
    return _TYPE_NAMES.get(kind, kind.__name__)


def _format_default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "its own defaults"
    if isinstance(value, Mapping):
        value = {str(key): entry for key, entry in value.items()}
    if isinstance(value, timedelta):
        value = format_duration(value)
    return "none" if value in (None, "", [], {}) else f"`{value}`"


def _read_comments(model: type[BaseModel]) -> dict[str, str]:
    """Field name -> the comment above it or beside it in the source."""
    comments: dict[str, str] = {}
    above: list[str] = []
    bases = [base for base in reversed(model.__mro__) if issubclass(base, BaseModel)]
    sources = [inspect.getsource(base) for base in bases if base != BaseModel]
    for line in "".join(sources).splitlines():
        field, comment = _FIELD.match(line), line.partition("  # ")[2]
        if line.strip().startswith("# "):
            above.append(line.strip()[2:])
        elif field:
            comments[field[1]] = " ".join([*above, comment]).strip()
            above = []
        elif not line.strip():
            above = []
    return comments


def _render_views() -> str:
    lines = [
        "## Views\n",
        "The values of `presenter`, and the parts that `shown` maps to",
    ]
    lines += ["arguments. Without `shown`, the first of the usual names applies.\n"]
    lines += ["| view | part: usual names |", "| --- | --- |"]
    for name in sorted(PRESENTERS):
        parts = ROLES.get(name, {})
        usual = "; ".join(f"`{part}`: {', '.join(n)}" for part, n in parts.items())
        lines.append(f"| `{name}` | {usual} |")
    return "\n".join([*lines, ""])


def _render_variables() -> str:
    """The variables of conditions, with the comments in `conditions.VARIABLES`."""
    source = inspect.getsource(conditions).partition("VARIABLES = {")[2]
    lines = [
        "## What conditions read (CEL)\n",
        "| variable | meaning |",
        "| --- | --- |",
    ]
    lines += [
        f"| `{name}` | {comment} |" for name, comment in _read_variable_comments(source)
    ]
    return "\n".join([*lines, ""])


def _read_variable_comments(source: str) -> Iterator[tuple[str, str]]:
    for line in source.partition("}")[0].splitlines():
        name = re.match(r'\s+"(\w+)":', line)
        if name:
            yield name[1], line.partition("  # ")[2]
