"""Practice: starting one, its items, and its end."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)
from django_htmx.http import HttpResponseClientRedirect

from assurance import practice as practices
from journal.errors import NotFound, TextMissing
from reviews.choices import DefectKind, Verdict

from ..components import htmx
from ..components.frame import require_person
from . import practice_page

WARM_UP_SLUG = "warm-up"


@require_POST
@htmx.vary_on_htmx
def practice_start(request: HttpRequest, kind: str) -> HttpResponse:
    """Start a warm-up, or a practice of one kind of defect."""
    if kind != WARM_UP_SLUG and kind not in set(DefectKind):
        raise NotFound
    chosen = practices.start_practice(
        person=require_person(request),
        kind=None if kind == WARM_UP_SLUG else DefectKind(kind),
    )
    url = practice_page.find_next_url(chosen)
    if htmx.wants_partial(request):  # from the outcome of a canary: leave that page
        return HttpResponseClientRedirect(url)
    return redirect(url)


@require_POST
def practice_decline(request: HttpRequest) -> HttpResponse:
    """Decline the warm-up that the queue offers."""
    practices.decline_warm_up(person=require_person(request))
    return redirect("reviews:queue")


@require_safe
def practice(request: HttpRequest, pk: int) -> HttpResponse:
    """The answers of an own practice that ended."""
    page = practice_page.build_practice_page(require_person(request), pk)
    return render(request, "desk/assurance/practice.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
def practice_item(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """One item; POST answers it."""
    person, answer = require_person(request), request.POST.get("answer", "")
    wrong = request.method == "POST" and answer not in {Verdict.APPROVE, Verdict.REJECT}
    error = "Choose approve or reject. Nothing was recorded." if wrong else ""
    page = practice_page.build_item_page(person, pk, number, error)
    if wrong or request.method != "POST":
        status = TextMissing.status if wrong else 200
        context = {"page": page}
        template = "desk/assurance/practice_item.html"
        return render(request, template, context, status=status)
    practices.record_answer(
        practice_id=pk, number=number, person=person, verdict=Verdict(answer)
    )
    return redirect("reviews:practice_item", pk, number)


@require_POST
def practice_skip(request: HttpRequest, pk: int) -> HttpResponse:
    """End an own practice before its last answer."""
    practices.skip_practice(practice_id=pk, person=require_person(request))
    messages.success(request, "The practice has ended. You can start another one.")
    return redirect("reviews:practice", pk)
