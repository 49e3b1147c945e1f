"""After a restore: what is known, and the two people who let things run again."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from reviews import recovery
from reviews.desk.components import htmx
from reviews.desk.recovery import views as queries

from .who import person

LOOKED = "Noted. A second person must look as well."
BEGUN = "A new epoch began. Workers go on by themselves."


@require_http_methods(["GET", "HEAD", "POST"])
def restored(request: HttpRequest) -> HttpResponse:
    """Whether this is the database that we know; and to say so, for who may."""
    who, reason = person(request), request.POST.get("reason", "")
    error = None
    if request.method == "POST":
        error = htmx.attempt(lambda: recovery.look_at(person=who, reason=reason))
        if error is None:
            done = recovery.waiting() is None
            messages.success(request, BEGUN if done else LOOKED)
            return redirect("reviews:restored")
    page = queries.page(who)
    kept = "" if page.offered else reason
    context = {"page": page, "problem": error, "reason": reason, "kept": kept}
    status = error.status if error else 200
    return render(request, "reviews/restored.html", context, status=status)
