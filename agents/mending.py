"""Undoing what was done, by a proposal; and mending by hand what is stuck or wrong."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from journal.errors import DomainError
from reviews import htmx
from reviews.views import frame
from reviews.views.who import person

from . import reversals
from .forms import UndoForm
from .queries import undoing


@require_http_methods(["GET", "HEAD", "POST"])
def reversal(request: HttpRequest, pk: str) -> HttpResponse:
    """What would undo an effect, and proposing it."""
    form = UndoForm(request.POST or None)
    undoing.page(person(request), pk, frame.of(request).now)
    error = None
    if form.is_valid():
        error = htmx.attempt(lambda: _undo(request, pk, form))
        if error is None:
            return _undoing(request, pk)
    return _reversal_page(request, pk, form, error)


def _undo(request: HttpRequest, pk: str, form: UndoForm) -> None:
    reason = form.cleaned_data["reason"]
    reversals.propose(execution_id=pk, person=person(request), reason=reason)


def _undoing(request: HttpRequest, pk: str) -> HttpResponse:
    found = undoing.page(person(request), pk, frame.of(request).now)
    messages.success(request, f"{found.word}. Someone else decides it.")
    return redirect(found.word_url)


def _reversal_page(
    request: HttpRequest, pk: str, form: UndoForm, error: DomainError | None
) -> HttpResponse:
    page = undoing.page(person(request), pk, frame.of(request).now)
    context = {"page": page, "form": form, "problem": error}
    refused = error.status if error else 422
    status = refused if request.method == "POST" else 200
    return render(request, "agents/reversal.html", context, status=status)
