"""What a request showed and shows: page evidence, its versions, and its hidden
values."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from journal.errors import DomainError, NotFound
from reviews import permissions
from reviews.evidence import reveals
from reviews.roles import Permission

from ..components import frame, htmx
from ..components.frame import require_person
from ..forms import RevealForm
from ..request import load, versions
from . import page as as_seen_queries

SHOWN_FOR_S = 60


@require_safe
def as_seen(request: HttpRequest, pk: str, decision: int) -> HttpResponse:
    """The page that a decider had on the screen, and whether its bytes still match."""
    page = as_seen_queries.load_as_seen_page(require_person(request), pk, decision)
    return render(request, "desk/as_seen/as_seen.html", {"page": page})


@require_safe
def version(request: HttpRequest, pk: str, n: int) -> HttpResponse:
    """A version, read-only; `?compare=2..3` shows what one changed against the
    other."""
    compare = request.GET.get("compare", "")
    page = versions.load_version_page(require_person(request), pk, n, compare)
    return render(request, "desk/as_seen/version.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@htmx.vary_on_htmx
def reveal(request: HttpRequest, pk: str) -> HttpResponse:
    """The hidden arguments; POST shows one of them for a minute."""
    loaded = load.load_request(
        require_person(request), pk, frame.get_frame(request).now
    )
    hidden: list[reveals.HiddenArgument | reveals.HiddenFile] = [
        *reveals.list_hidden_arguments(loaded.sealed),
        *reveals.list_hidden_files(loaded.sealed),
    ]
    if not hidden or not permissions.has_permission(loaded.person, Permission.REVEAL):
        raise NotFound
    form = RevealForm(request.POST)
    values: list[reveals.RevealedValue] = []
    files: list[reveals.RevealedFile] = []

    def show() -> None:
        if not form.is_valid():
            raise NotFound
        sent = {"request_id": pk, "person": loaded.person, **form.cleaned_data}
        if sent["name"].startswith("file:"):
            files.append(reveals.reveal_file(**sent))
        else:
            values.extend(reveals.reveal_argument(**sent))

    error = htmx.catch_refusal(show) if request.method == "POST" else None
    return _render_hidden_values(request, pk, hidden, [*values, *files], error)


def _render_hidden_values(
    request: HttpRequest,
    pk: str,
    hidden: Sequence[reveals.HiddenArgument | reveals.HiddenFile],
    values: Sequence[reveals.RevealedValue | reveals.RevealedFile],
    error: DomainError | None,
) -> HttpResponse:
    """Render the list with the revealed value. Without JavaScript a Refresh header
    removes it."""
    context = {
        "id": pk,
        "hidden": hidden,
        "values": values,
        "error": error,
        "name": request.POST.get("name", ""),
        "reason": request.POST.get("reason", ""),
        "reason_code": request.POST.get("reason_code", ""),
        "reasons": reveals.RevealReason.choices,
        "seconds": SHOWN_FOR_S,
    }
    template = htmx.choose_template(request, "desk/as_seen/reveal.html", "hidden")
    response = render(request, template, context, status=error.status if error else 200)
    response["Cache-Control"] = "no-store"
    if values:
        back = reverse("reviews:reveal", args=[pk])
        response["Refresh"] = f"{SHOWN_FOR_S}; url={back}"
    return response
