"""The preview of an edit before it is committed: the server reads what was typed,
validates it, evaluates the policy, and says what would follow. Nothing is decided."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import QueryDict

from journal.clock import format_time
from journal.errors import (
    DomainError,
    FieldError,
    InvalidArgs,
    ReviewerRateLimited,
    StaleVersion,
)
from reviews.choices import Verdict
from reviews.decisions import modify
from reviews.decisions.modify import EditRequirements
from reviews.decisions.submission import VerdictSubmission
from reviews.effects.wording import format_required_people

from .. import argument_form
from ..argument_form import ArgumentForm, sheet
from ..components.throttle import RateLimiter
from . import comparison, panels
from .comparison import EditPreview, PreviewError, PreviewLine
from .load import LoadedRequest
from .panels import VerdictPanel

# Each preview may call the tool's reader; nobody types faster than this.
CHECK_LIMITER = RateLimiter(most=60, seconds=60)
_ELEMENT_ID_PATTERN = re.compile(r"[A-Za-z][\w-]{0,200}")
TOO_MANY_CHECKS = (
    "Too many checks in a minute. Nothing is lost. Check again in a moment."
)
NOTHING_CHANGED = "Nothing changed. Use Approve."


def build_preview_panel(
    loaded: LoadedRequest, sent: QueryDict, element: str
) -> VerdictPanel:
    """The panel of Modify after a button or a pause in typing. `element` is the id of
    the pressed element, if htmx sends it."""
    data = {name: text for name in sent if isinstance(text := sent.get(name), str)}
    asked = data.get("edit", "")
    made = panels.build_edit_form(loaded, data)
    if made is not None and asked:
        data = argument_form.apply_button(made, data, asked)
        made = panels.build_edit_form(loaded, data)
    error, shown = None, EditPreview()
    if made is not None:
        error, shown = _compute_preview(loaded, made, data)
    armed = panels.build_panel(loaded, Verdict.MODIFY, data=data, error=error)
    return replace(
        armed,
        problem="",
        other_errors=(),
        check=replace(shown, pressed=asked == "check"),
        field_focus=_find_focus_id(made, asked, element),
    )


def preview_refused_edit(
    loaded: LoadedRequest, sent: QueryDict, armed: VerdictPanel
) -> VerdictPanel:
    """The panel of a refused edit with the preview of it, which asks what the edit
    needs. Without a preview where the edit itself is wrong."""
    data = {name: text for name in sent if isinstance(text := sent.get(name), str)}
    made = panels.build_edit_form(loaded, data)
    if made is None:
        return armed
    error, shown = _compute_preview(loaded, made, data)
    return armed if error else replace(armed, check=shown)


def _compute_preview(
    loaded: LoadedRequest, made: ArgumentForm, data: Mapping[str, str]
) -> tuple[DomainError | None, EditPreview]:
    args, wrong = made.read()
    if not made.changes:
        return None, EditPreview(lines=[PreviewLine("unchanged", NOTHING_CHANGED)])
    try:
        _check_input(loaded, data, wrong)
        requirements = modify.preview_edit(_build_submission(loaded, args, data))
    except DomainError as error:
        return error, _build_refused_preview(loaded, made, error, data, args)
    return None, _build_accepted_preview(loaded, args, requirements)


def _check_input(
    loaded: LoadedRequest, data: Mapping[str, str], wrong: list[FieldError]
) -> None:
    """Refuse an old version, unreadable fields and too many previews before the tool's
    reader is asked. Raises StaleVersion, InvalidArgs or ReviewerRateLimited."""
    if data.get("version") != str(loaded.request.version):
        raise StaleVersion(current_version=loaded.request.version)
    if wrong:
        raise InvalidArgs("Some fields need correction.", errors=wrong)
    if not CHECK_LIMITER.allows(loaded.person.pk):
        raise ReviewerRateLimited(TOO_MANY_CHECKS)


def _build_submission(
    loaded: LoadedRequest, args: Mapping[str, Any], data: Mapping[str, str]
) -> VerdictSubmission:
    return VerdictSubmission(
        request_id=loaded.request.pk,
        person=loaded.person,
        verdict=Verdict.MODIFY,
        version=loaded.request.version,
        action_hash=data.get("action_hash", ""),
        args=args,
    )


def _build_refused_preview(
    loaded: LoadedRequest,
    made: ArgumentForm,
    error: DomainError,
    data: Mapping[str, str],
    args: Mapping[str, Any],
) -> EditPreview:
    """What is wrong. Policy errors are listed here, since they may concern several
    fields; other errors stand beside their field."""
    placed = panels.build_edit_form(loaded, data, error.errors)
    above = error.errors if error.code == "policy" else placed.above if placed else ()
    named = [
        PreviewError(made.label_of(problem["path"]), problem["message"])
        for problem in above
    ]
    reading = loaded.revision.reading
    rows = (
        comparison.compare_edit(loaded.revision, args, reading).rows
        if not error.errors
        else []
    )
    return EditPreview(problem=error.detail, above=named, rows=rows)


def _build_accepted_preview(
    loaded: LoadedRequest, args: Mapping[str, Any], requirements: EditRequirements
) -> EditPreview:
    reading = requirements.reading
    compared = comparison.compare_edit(loaded.revision, args, reading.as_json())
    return EditPreview(
        lines=_build_preview_lines(requirements),
        rows=compared.rows,
        effect=compared.effect,
        now_known=reading.before is not None,
        read_from=_describe_source(requirements),
        made=requirements.made if requirements.counts else None,
    )


def _build_preview_lines(requirements: EditRequirements) -> list[PreviewLine]:
    lines = []
    if requirements.risk.rank > requirements.risk_now.rank:
        text = f"This raises the risk to {requirements.risk.value.title()}."
        lines.append(PreviewLine("raises_risk", text, True))
    lines += _list_authority_lines(requirements)
    if requirements.widenings:
        because = " and ".join(requirements.widenings)
        text = f"This edit needs another person, because {because}."
        if not (requirements.rises or requirements.exceeds):  # the line before says it
            text += f" {_NOT_ENOUGH}"
        lines.append(PreviewLine("second_person", text, True))
    if requirements.counts:
        lines += _list_proof_lines(requirements)
    if requirements.verifiers:
        text = "The tool's verifier is asked when you confirm, not before."
        lines.append(PreviewLine("verifiers", text))
    return lines


_NOT_ENOUGH = "Your approval alone is not enough."


def _list_authority_lines(requirements: EditRequirements) -> list[PreviewLine]:
    """Whose approval the edit needs, beside what is required now."""
    asked = format_required_people(requirements.steps)
    if requirements.rises:
        text = f"This raises the required approval to {asked}. {_NOT_ENOUGH}"
        rules = [PreviewLine("rule", rule) for rule in requirements.rules]
        return [PreviewLine("raises", text, True), *rules]
    if requirements.exceeds:
        text = f"This exceeds your approval limit, so it goes to {asked}."
        return [PreviewLine("exceeds", f"{text} {_NOT_ENOUGH}", True)]
    if requirements.widenings:
        return []
    lower = requirements.tier.rank < requirements.tier_now.rank
    code, moves = ("lowers", "lowers") if lower else ("same", "does not change")
    needs = "your approval alone is enough" if requirements.is_enough else asked
    return [PreviewLine(code, f"This {moves} the required approval: {needs}.")]


def _list_proof_lines(requirements: EditRequirements) -> list[PreviewLine]:
    """What the editor has to give for the edit, and not for the request as it is."""
    lines = []
    if requirements.made.requires_reason and not requirements.reason_asked:
        lines.append(PreviewLine("reason", "This edit needs a reason.", True))
    if requirements.made.step_up and not requirements.step_up_asked:
        lines.append(PreviewLine("step_up", "This edit needs your password.", True))
    return lines


def _describe_source(requirements: EditRequirements) -> str:
    reading = requirements.reading
    if reading.problem:
        return "the look-up failed; check the source system yourself."
    if reading.before is None:
        return "this tool declares no look-up."
    return f"read from {reading.source or 'the tool'} at {format_time(reading.at)}."


def _find_focus_id(made: ArgumentForm | None, asked: str, element: str) -> str:
    """The id of the element that gets the focus after the fields are drawn again."""
    verb, _, name = asked.partition(":")
    if made is None or not name:
        return ""
    if verb not in {"add", "remove"}:
        pressed = element if _ELEMENT_ID_PATTERN.fullmatch(element) else ""
        return pressed or sheet.build_element_id(name)
    if verb == "remove":
        return sheet.build_element_id(name.rpartition(".")[0])
    rows = next((node for node in made.walk() if node.name == name), None)
    last = rows.children[-1].id if rows and rows.children else ""
    return last or sheet.build_element_id(name)
