"""A setting or a flag: before and after, for whom, and how to go back. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .arguments import is_secret_name
from .common import Subject, build_loud_tags, build_presentation
from .shapes import Presentation, SizeFigure, Tag
from .views import GroupView

_EVERYBODY = re.compile(
    r"^(100 ?%?|1\.0|all|\*|everyone|everybody|global|any)$|all.users"
)
_GRAVE = re.compile(
    r"auth|login|sso|mfa|2fa|password|secret|token|key\b|cors|csp|tls|ssl|cert|encrypt"
    r"|permission|role|admin|allow|block|firewall|rate.?limit|audit|log\b|backup"
)
_BILLING = re.compile(
    r"billing|price|pricing|payment|refund|charge|tax|invoice|payout|currency|fee"
    r"|discount|limit|quota|plan\b"
)
_OFF = {"no", "none", "off", "disabled", "false", "0"}


def show(subject: Subject) -> Presentation:
    """Present the value as a change of the state, with its key, scope and audience."""
    rows = subject.listed("key", "scope", "audience", "rollback")
    key = subject.text("key")
    return build_presentation(
        subject,
        *_build_config_tags(subject),
        size=(SizeFigure("Setting", key, "", untrusted=True),) if key else (),
        views=[GroupView("Setting and scope", tuple(rows))],
    )


def _build_config_tags(subject: Subject) -> Iterator[Tag]:
    key = " ".join(subject.words("key"))
    scope = subject.words("audience", "scope")
    value = subject.path("value")
    back = subject.path("rollback") or (value and value in subject.known)
    yield from build_loud_tags(
        (_GRAVE.search(key) or is_secret_name(key), "A security setting"),
        (_BILLING.search(key), "A billing setting"),
        (any(map(_EVERYBODY.search, scope)), "For everyone"),
        (not subject.words("audience"), "No scope given: everyone"),
        (not back, "No previous value to restore"),
        (_OFF & set(subject.words("value")), "Turns something off"),
    )
