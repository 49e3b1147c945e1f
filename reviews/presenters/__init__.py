"""What a person is shown of an effect, computed from the exact arguments (I31). Pure.

One module a kind of tool; a kind without a module is shown as a table. Values are
plain text: the template tags of `inert` print them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from policies.documents import ToolDefinition

from . import (
    access,
    common,
    config,
    deploy,
    email,
    file,
    money,
    publish,
    record,
    request,
    schedule,
    shell,
    sql,
)
from .arguments import HIDDEN, Conceal, in_order
from .common import Subject
from .shapes import Presentation, texts

__all__ = ["Presentation", "present", "texts"]

_KINDS: dict[str, Callable[[Subject], Presentation]] = {
    "access": access.show,
    "config": config.show,
    "deletion": record.show_deletion,
    "deploy": deploy.show,
    "email": email.show,
    "file": file.show,
    "http": request.show,
    "message": email.show,
    "money": money.show,
    "publish": publish.show,
    "record": record.show,
    "schedule": schedule.show,
    "shell": shell.show,
    "sql": sql.show,
}


def present(
    definition: ToolDefinition,
    args: Mapping[str, Any],
    *,
    before: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    facts: Mapping[str, Any] | None = None,
    conceal: Conceal = lambda _: HIDDEN,
    dry_run: Mapping[str, Any] | None = None,
    at: datetime | None = None,
    windows: Mapping[str, timedelta] | None = None,
) -> Presentation:
    """Present one effect.

    `before` and `labels` are the reader's (a `Reading`), `facts` the stored facts of
    the rules, with money in minor units. `conceal` makes the text that stands for a
    value the schema marks sensitive, from its JSON; it should be keyed, so that equal
    values can be told without being read. `dry_run` is as the reading keeps it, and
    `at` is when it was made. `windows` are those of the policy's measures, by name.
    """
    args = in_order(args, definition.arguments)
    subject = Subject(
        definition,
        args,
        before,
        labels or {},
        facts or {},
        conceal,
        dry_run,
        at,
        windows or {},
    )
    return _KINDS.get(definition.presenter, common.show)(subject)
