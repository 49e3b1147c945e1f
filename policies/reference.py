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

Printed by `manage.py policy_reference --write`; do not edit. A YAML file that is loaded
with `manage.py load_policy` and tried with `manage.py try_policy`. Editors check it
against `policy.schema.json` beside this page. Durations are `90s`, `30m`, `24h`, `7d`;
`${NAME}` in any text is filled in by `--set NAME=VALUE`. A key that nothing reads is
refused, with its line and what to write instead.
"""
READERS = """## The reader's contract

A tool's `reader` says what the world looks like before the effect. The gate asks it
when something is proposed or edited, when a person takes the request up, and before the
effect; within two seconds, and never inside a transaction. A webhook gets
`{tool, args, agent, thread}`. A Python function is called with `args`, and with those
of `tool`, `agent` and `thread` that it takes by name. Both answer an object:

| member | is |
| --- | --- |
| `before` | the record as it is, an object compared with the arguments; null for none |
| `keys` | the aggregation keys that `keys` declares, texts of 1 to 200 \
characters; one that is missing blocks the proposal |
| `facts` | single values that rules read as `before.<name>` where `facts` \
declares them, and that views show; a text beside `<name>_currency` is money |
| `preconditions` | what must still hold before the effect: an etag, \
a row version, a balance |
| `labels` | what the fields of `before` are called on the page |
| `source` | where it was read, for the page |

A text that is a moment with an offset (`2026-11-23T16:29:18Z`) or a day, and nothing
besides, is shown as time and date. Of a fact on top of a page (`review.facts`) the page
says how far that was from the reading; where its name ends in `until`, whether it is
over or how long is left.
Any other shape, an error and a time-out are a reading without values; the page says
why.
`reader: {tool: get_file, args: {file_id: $args.file_id}}` asks a tool that only reads
(tier auto, low risk, blast radius 1, keyed) through its own executor, without a grant.
Its result is `before`; declared keys, facts and preconditions are its members of the
same name, or what `take: {owner: $result.owner.id}` says.

`dry_run` is asked in the same way with `dry_run: true` and answers `{says, source}`:
what the effect would do, as a text, a list of texts or an object.
"""
MONEY = """## Money, ceilings and sums

`money` names pairs of plain arguments, `amounts` all other money of a tool:

```yaml
amounts:
  - {path: "items[*].price", currency: "items[*].currency", times: "items[*].quantity"}
  - {path: shipping.cost, currency: USD}
  - {fact: order_total}     # the reader says it, with order_total_currency beside it
```

- All of it counts together: `money.amount_minor` and `money.currency` in rules,
  `critical_above`, `limits`, the ceilings of people and of batches, and every measure
  with an `amount` (unless it says `alone: true`). The page says what it comes to. A
  person's ceiling is of each item of a batch; how much one act may move is the
  batch's own `total`.
- Amounts in several currencies are not added up. Such a proposal escalates with the
  rule `money.unknown_currency`, nobody with a ceiling decides it, and it is in no
  batch; `money.currency` is then empty and `money.amount_minor` is the part in the
  policy's currency. While it is in the window of a sum, what follows with the same key
  escalates, too.
- A fact that the reader does not give, or that is no amount, blocks the proposal
  (`amount.unresolved`), and so does a key (`key.unresolved`). An argument that the
  schema lets a call leave out moves nothing; one that is no money is refused with 422.
- A measure counts what waits, is under way, ran, or may have run. Its window counts
  from the effect of what ran; what waits is in every window. What was refused,
  rejected, withdrawn or has expired counts no more. What the gate performed and its
  service says failed counts no more either. What an agent performed and says failed
  counts on until the tool's look-up says that it never happened; what nobody knows
  counts until a look-up or a person says so.
- A measure that is new begins empty when its policy is activated: what was proposed
  under an earlier policy is not added to it. Until its window has passed once, let a
  rule ask for more than the sum alone would. A measure that keeps its name keeps what
  it has counted, in the way in which it was counted then.
"""
SENTENCES = """## The effect sentence

`{amount}` is an argument that every call has. A call may leave out `{recipient?}`: when
it is there it says `with recipient ...`, after its label, else nothing.
`[ to {recipient?}]` says what is in brackets only when the argument is there. `{...}`
stands for every argument that a call may leave out and that is not named elsewhere.
`{before.owner}` is a fact of the reader that `facts` declares; one that the reader did
not give reads `(not known)`, and with `[ of {before.owner?}]` nothing is said.
The parts of an object stand in the order of its schema's `required`, the others after;
`line2` stands after `line1`.
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
    found = Document.model_json_schema(by_alias=True)
    found["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    _relax_required_keys(found)
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def _relax_required_keys(found: dict[str, Any]) -> None:
    """Make two keys optional that the models add by themselves: a tool's name, which is
    its key, and the kind of a ToolReader."""
    tool = found["$defs"]["ToolDefinition"]
    tool["required"].remove("name")
    reader = found["$defs"]["ToolReader"]
    reader["required"].remove("kind")


def render_page() -> str:
    """The text of docs/policy-reference.md."""
    parts = [HEAD, *(_render_part(model) for model in _list_models())]
    return "\n".join(
        [*parts, MONEY, SENTENCES, READERS, _render_views(), _render_variables()]
    )


def _list_models() -> list[type[BaseModel]]:
    """The document's model, then those of its parts, depth first in field order."""
    found: dict[type[BaseModel], None] = {}
    _collect_models(Document, found)
    return list(found)


def _collect_models(annotation: Any, found: dict[type[BaseModel], None]) -> None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation in found:
            return
        found[annotation] = None
        for field in annotation.model_fields.values():
            _collect_models(field.annotation, found)
    for inner in get_args(annotation):
        _collect_models(inner, found)


def _render_part(model: type[BaseModel]) -> str:
    comments = _read_comments(model)
    rows = [
        f"| `{field.alias or name}` | {_format_type(field)} | "
        f"{_format_default(field)} | {comments.get(name, '')} |"
        for name, field in model.model_fields.items()
    ]
    lines = ["| key | value | default | |", "| --- | --- | --- | --- |", *rows]
    title = "The document" if model is Document else model.__name__
    said = re.sub(r" \(gate\.md[^)]*\)", "", inspect.cleandoc(model.__doc__ or ""))
    return "\n".join([f"## {title}\n", said, "", *lines, ""])


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
        return " | ".join(str(one) for one in inner)
    if str(annotation).startswith("typing.Literal"):
        return " | ".join(str(one) for one in inner)
    if origin in (list, dict):
        return f"{origin.__name__} of {', '.join(map(_describe_annotation, inner))}"
    return (
        " | ".join(_describe_annotation(one) for one in inner if one is not type(None))
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
        value = {str(key): one for key, one in value.items()}
    if isinstance(value, timedelta):
        value = format_duration(value)
    return "none" if value in (None, "", [], {}) else f"`{value}`"


def _read_comments(model: type[BaseModel]) -> dict[str, str]:
    """Field name -> the comment above it or beside it in the source."""
    found: dict[str, str] = {}
    above: list[str] = []
    for line in inspect.getsource(model).splitlines():
        field, comment = _FIELD.match(line), line.partition("  # ")[2]
        if line.strip().startswith("# "):
            above.append(line.strip()[2:])
        elif field:
            found[field[1]] = " ".join([*above, comment]).strip()
            above = []
        elif not line.strip():
            above = []
    return found


def _render_views() -> str:
    lines = [
        "## Views\n",
        "What `presenter` may be, and the parts that `shown` joins to",
    ]
    lines += ["arguments; without it the first of the usual names counts.\n"]
    lines += ["| view | part: usual names |", "| --- | --- |"]
    for name in sorted(PRESENTERS):
        parts = ROLES.get(name, {})
        said = "; ".join(f"`{part}`: {', '.join(n)}" for part, n in parts.items())
        lines.append(f"| `{name}` | {said} |")
    return "\n".join([*lines, ""])


def _render_variables() -> str:
    """The section on the variables of conditions, described by the comments in
    `conditions.VARIABLES`."""
    source = inspect.getsource(conditions).partition("VARIABLES = {")[2]
    lines = ["## What conditions read (CEL)\n", "| variable | is |", "| --- | --- |"]
    lines += [
        f"| `{name}` | {said} |" for name, said in _read_variable_comments(source)
    ]
    return "\n".join([*lines, ""])


def _read_variable_comments(source: str) -> Iterator[tuple[str, str]]:
    for line in source.partition("}")[0].splitlines():
        name = re.match(r'\s+"(\w+)":', line)
        if name:
            yield name[1], line.partition("  # ")[2]
