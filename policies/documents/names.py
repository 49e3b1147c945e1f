"""What all parts of a policy document share: the base of their models, and the patterns
and types of names and short texts."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

TOOL_NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$"
TOOLS_OF_RULE = r"^([A-Za-z][A-Za-z0-9_.-]{0,63}|[*])$"
NAME = r"^[a-z][a-z0-9_]{0,63}$"
SLUG = r"^[a-z][a-z0-9_-]{0,63}$"
CURRENCY = r"^[A-Z]{3}$"
AUDIENCE = r"^[!-~]{1,200}$"
RULE_ID = r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$"
MONEY_PATH = r"^[A-Za-z_][\w-]*(\[\*\])?(\.[A-Za-z_][\w-]*(\[\*\])?)*$"
CALLABLE = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*[.:][A-Za-z_]\w*$"
WEB_ADDRESS = r"^https?://"
CHANNEL = r"^[a-z][a-z0-9_]{0,31}(:[!-~]{1,80})?$"

# The error message for a text that does not match the pattern.
PATTERN_HELP = {
    TOOL_NAME: "a tool's name consists of letters, digits, _, . and -, and begins with "
    "a letter",
    TOOLS_OF_RULE: 'write the name of a tool, or "*" for every tool',
    NAME: "a name that rules read consists of lowercase letters, digits and _, and "
    "begins with a letter",
    SLUG: "a name consists of lowercase letters, digits, _ and -, and begins with a "
    "letter",
    CURRENCY: "write three capital letters, such as USD",
    AUDIENCE: "write 1 to 200 visible ASCII characters, without spaces",
    RULE_ID: "a rule's id consists of lowercase letters, digits and _, in parts joined "
    "by dots, such as refund.over_500",
    MONEY_PATH: "write the path of an argument, such as total, order.total or "
    "items[*].price",
    CALLABLE: "write a Python function as package.module.function",
    CHANNEL: "write a channel, such as email or slack, or a channel and a place, such "
    "as slack:#refunds",
    WEB_ADDRESS: "write a URL that begins with http:// or https://",
}

ToolName = Annotated[str, StringConstraints(pattern=TOOL_NAME)]
ToolOfRule = Annotated[str, StringConstraints(pattern=TOOLS_OF_RULE)]
# Names that conditions read as members: sum.refunds, before.total.
Name = Annotated[str, StringConstraints(pattern=NAME)]
Slug = Annotated[str, StringConstraints(pattern=SLUG)]
MoneyPath = Annotated[str, StringConstraints(pattern=MONEY_PATH, max_length=200)]
Currency = Annotated[str, StringConstraints(pattern=CURRENCY)]
Audience = Annotated[str, StringConstraints(pattern=AUDIENCE)]
RuleId = Annotated[str, StringConstraints(pattern=RULE_ID, max_length=64)]
ShortText = Annotated[str, StringConstraints(max_length=300)]

SOURCE_PATTERN = re.compile(r"\$(args|result)\.([A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)")


class DocumentPart(BaseModel):
    """Base of the document's models: immutable, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True)
