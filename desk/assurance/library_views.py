"""The library of defects: the list, one kind with the form of a change, and the answer
of a second administrator."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from assurance import library
from journal.errors import DomainError, InvalidArgs, NotFound, TextMissing
from reviews.choices import DefectKind

from ..components import frame
from ..components.frame import require_person
from .library_page import build_kind_page, build_library_page

ANSWERED = {
    "confirm": "Confirmed. The change is in force.",
    "refuse": "Refused. Nothing was changed.",
    "withdraw": "Withdrawn. Nothing was changed.",
}


@require_safe
def defects(request: HttpRequest) -> HttpResponse:
    """Every kind of defect with its figures."""
    rows = build_library_page(require_person(request), frame.get_frame(request).now)
    return render(request, "desk/assurance/defects.html", {"rows": rows})


@require_http_methods(["GET", "HEAD", "POST"])
def defect(request: HttpRequest, kind: str) -> HttpResponse:
    """One kind of defect; POST proposes how often it is planted."""
    person = require_person(request)
    if kind not in set(DefectKind):
        raise NotFound
    if request.method != "POST":
        return _render_kind(request, DefectKind(kind))
    weight = request.POST.get("weight", "")
    try:
        library.propose_change(
            person=person,
            kind=DefectKind(kind),
            weight=int(weight) if weight.isascii() and weight.isdigit() else -1,
            reason=request.POST.get("reason", ""),
        )
    except (InvalidArgs, TextMissing) as error:
        return _render_kind(request, DefectKind(kind), error)
    messages.success(request, "Proposed. Another administrator must confirm.")
    return redirect("reviews:defect", kind)


@require_POST
def defect_answer(request: HttpRequest, pk: int) -> HttpResponse:
    """Confirm the change of another administrator, refuse it with a reason, or withdraw
    one's own."""
    kind = DefectKind(library.load_change(require_person(request), pk).defect)
    try:
        message = _answer(request, pk)
    except TextMissing as error:
        return _render_kind(request, kind, error)
    messages.success(request, message)
    return redirect("reviews:defect", kind)


def _answer(request: HttpRequest, pk: int) -> str:
    person, answer = require_person(request), request.POST.get("answer", "")
    if answer == "confirm":
        library.confirm_change(change_id=pk, person=person)
    elif answer == "refuse":
        reason = request.POST.get("reason", "")
        library.refuse_change(change_id=pk, person=person, reason=reason)
    elif answer == "withdraw":
        library.withdraw_change(change_id=pk, person=person)
    else:
        raise TextMissing("Choose to confirm or to refuse. Nothing was recorded.")
    return ANSWERED[answer]


def _render_kind(
    request: HttpRequest, kind: DefectKind, refusal: DomainError | None = None
) -> HttpResponse:
    errors = {}
    if refusal is not None:
        errors = {error["path"]: error["message"] for error in refusal.errors}
        errors = errors or {"reason": refusal.detail}
    page = build_kind_page(
        require_person(request),
        kind,
        frame.get_frame(request).now,
        weight=request.POST.get("weight", ""),
        typed=request.POST.get("reason", ""),
        errors=errors,
    )
    status = refusal.status if refusal else 200
    context = {"page": page}
    return render(request, "desk/assurance/defect.html", context, status=status)
