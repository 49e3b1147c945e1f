"""The preview of an edit before it is committed: the server reads what was typed,
validates it, evaluates the policy, and says what would follow. Nothing is decided."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.http import QueryDict

from journal.clock import time_of_day
from journal.errors import DomainError, FieldError, InvalidArgs, Stale, Throttle
from policies import tools
from reviews.choices import Verdict
from reviews.decisions import modify
from reviews.decisions.modify import Preview
from reviews.decisions.submission import Said
from reviews.desk import argument_form
from reviews.desk.argument_form import Form, sheet
from reviews.desk.components.throttle import Pace
from reviews.effects.wording import asked_of

from . import comparison, panels
from .comparison import ThreeWay
from .load import Loaded
from .panels import Panel

# Each preview may call the tool's reader; nobody types faster than this.
PACE = Pace(most=60, seconds=60)
_ID = re.compile(r"[A-Za-z][\w-]{0,200}")
BUSY = "Too many checks in a minute. Type on; nothing is lost. Check again in a moment."
NOTHING = "Nothing changed: use Approve."


class Line(NamedTuple):
    """One sentence of a preview; `loud` ones are announced to screen readers."""

    text: str
    loud: bool = False


class Wrong(NamedTuple):
    """One error, with the label of its field."""

    label: str
    message: str


@dataclass(frozen=True, slots=True)
class Look:
    """The preview as `#check` shows it."""

    problem: str = ""
    above: Sequence[Wrong] = ()
    lines: Sequence[Line] = ()
    rows: Sequence[ThreeWay] = ()
    now_known: bool = False
    read_from: str = ""
    pressed: bool = False  # by the button, not a pause in typing: it gets the focus

    @property
    def say(self) -> str:
        """What a screen reader announces: never foreign text."""
        loud = [line.text for line in self.lines if line.loud]
        return " ".join(loud) or ("Not right yet." if self.problem else "")


def look(loaded: Loaded, sent: QueryDict, element: str) -> Panel:
    """The panel of Modify after a button or a pause in typing. `element` is the id of
    the pressed element, if htmx sends it."""
    data = {name: text for name in sent if isinstance(text := sent.get(name), str)}
    asked = data.get("edit", "")
    made = _form(loaded, data)
    if made is not None and asked:
        data = argument_form.after(made, data, asked)
        made = _form(loaded, data)
    error, found = None, Look()
    if made is not None:
        error, found = _weighed(loaded, made, data)
    armed = panels.build(loaded, Verdict.MODIFY, data=data, error=error)
    return replace(
        armed,
        problem="",
        other_errors=(),
        check=replace(found, pressed=asked == "check"),
        field_focus=_focus(made, asked, element),
    )


def _form(
    loaded: Loaded, data: Mapping[str, str], errors: Sequence[FieldError] = ()
) -> Form | None:
    tool = loaded.revision.tool
    if tool is None:
        return None
    definition, args = tools.definition(tool), loaded.revision.args
    return argument_form.form(definition, args, sent=data, errors=errors)


def _weighed(
    loaded: Loaded, made: Form, data: Mapping[str, str]
) -> tuple[DomainError | None, Look]:
    args, wrong = made.read()
    if not made.changes:
        return None, Look(lines=[Line(NOTHING)])
    try:
        _check(loaded, data, wrong)
        found = modify.preview(_said(loaded, args, data))
    except DomainError as error:
        return error, _refused(loaded, made, error, data, args)
    return None, _found(loaded, args, found)


def _check(loaded: Loaded, data: Mapping[str, str], wrong: list[FieldError]) -> None:
    """Refuse an old version, unreadable fields and too many previews before the tool's
    reader is asked. Raises Stale, InvalidArgs or Throttle."""
    if data.get("version") != str(loaded.request.version):
        raise Stale(current_version=loaded.request.version)
    if wrong:
        raise InvalidArgs("Some fields are not right yet.", errors=wrong)
    if not PACE.allows(loaded.person.pk):
        raise Throttle(BUSY)


def _said(loaded: Loaded, args: Mapping[str, Any], data: Mapping[str, str]) -> Said:
    return Said(
        request_id=loaded.request.pk,
        person=loaded.person,
        verdict=Verdict.MODIFY,
        version=loaded.request.version,
        action_hash=data.get("action_hash", ""),
        args=args,
    )


def _refused(
    loaded: Loaded,
    made: Form,
    error: DomainError,
    data: Mapping[str, str],
    args: Mapping[str, Any],
) -> Look:
    """What is wrong. Policy errors are listed here, since they may concern several
    fields; other errors stand beside their field."""
    placed = _form(loaded, data, error.errors)
    above = error.errors if error.code == "policy" else placed.above if placed else ()
    named = [Wrong(made.label_of(one["path"]), one["message"]) for one in above]
    reading = loaded.revision.reading
    rows = comparison.rows(loaded.revision, args, reading) if not error.errors else []
    return Look(problem=error.detail, above=named, rows=rows)


def _found(loaded: Loaded, args: Mapping[str, Any], found: Preview) -> Look:
    reading = found.reading
    return Look(
        lines=_lines(found),
        rows=comparison.rows(loaded.revision, args, reading.as_json()),
        now_known=reading.before is not None,
        read_from=_read_from(found),
    )


def _lines(found: Preview) -> list[Line]:
    lines = []
    if found.risk.rank > found.risk_now.rank:
        lines.append(Line(f"This raises the risk to {found.risk.value.title()}.", True))
    asked = asked_of(found.steps)
    if found.rises:
        tier = found.tier.value.title()
        said = f"This raises the tier to {tier} and needs {asked}. Yours is not enough."
        lines.append(Line(said, True))
        lines += [Line(text) for text in found.rules]
    elif found.exceeds:
        said = f"This is more than you may decide, so it goes on to {asked}."
        lines.append(Line(f"{said} Yours is not enough.", True))
    else:
        lower = found.tier.rank < found.tier_now.rank
        moves = "This lowers the tier to" if lower else "The tier stays"
        needs = "your approval alone is enough" if found.is_enough else f"{asked}"
        lines.append(Line(f"{moves} {found.tier.value.title()}: {needs}."))
    if found.verifiers:
        lines.append(Line("Its verifier is asked when you commit, not before."))
    return lines


def _read_from(found: Preview) -> str:
    reading = found.reading
    if reading.problem:
        return "the look-up failed, so compare with the other system yourself."
    if reading.before is None:
        return "this tool declares no look-up."
    return f"read from {reading.source or 'the tool'} at {time_of_day(reading.at)}."


def _focus(made: Form | None, asked: str, element: str) -> str:
    """The id of the element that gets the focus after the fields are drawn again."""
    verb, _, name = asked.partition(":")
    if made is None or not name:
        return ""
    if verb not in {"add", "remove"}:
        pressed = element if _ID.fullmatch(element) else ""
        return pressed or sheet.element_id(name)
    if verb == "remove":
        return sheet.element_id(name.rpartition(".")[0])
    rows = next((node for node in made.walk() if node.name == name), None)
    last = rows.children[-1].id if rows and rows.children else ""
    return last or sheet.element_id(name)
