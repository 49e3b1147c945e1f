"""Standing grants: issuing one from a request, the list, and revoking."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from policies.models import Person, StandingGrant
from reviews import canary_verdicts
from reviews.standing_grants import issuance

from ..components import htmx
from ..components.frame import require_person
from ..forms import ReasonForm
from . import page as queries


@require_http_methods(["GET", "HEAD", "POST"])
def issue_standing_grant(request: HttpRequest, pk: str) -> HttpResponse:
    """What would be allowed in advance; POST allows it."""
    person = require_person(request)
    page = queries.build_issue_page(person, pk)
    form = ReasonForm(request.POST or None)
    problem = None
    if request.method == "POST" and form.is_valid():
        reason = form.cleaned_data["reason"]
        shown = request.POST.get("shown", "")
        problem = htmx.catch_refusal(
            lambda: _allow(request, person, pk, reason=reason, shown=shown)
        )
        if problem is None:
            return redirect("reviews:standing_grants")
        page = queries.build_issue_page(person, pk)
    unsent = form.data.get("reason", "") if problem and not page.terms else ""
    context = {"page": page, "form": form, "problem": problem, "kept": unsent}
    status = htmx.compute_form_status(problem, sent=request.method == "POST")
    return render(
        request, "desk/standing_grants/standing_grant.html", context, status=status
    )


def _allow(
    request: HttpRequest, person: Person, pk: str, *, reason: str, shown: str
) -> None:
    if canary_verdicts.pass_on_canary(request_id=pk, person=person, allows=True):
        messages.info(request, "This was a canary, and it ended. Nothing was allowed.")
        return
    issuance.issue_standing_grant(
        request_id=pk, person=person, reason=reason, shown=shown
    )
    messages.success(request, "Allowed in advance. Each use is in Activity.")


@require_safe
def standing_grants(request: HttpRequest) -> HttpResponse:
    """The standing grants in force, and those that ended, newest first."""
    lines = queries.list_standing_grants(require_person(request))
    context = {
        "in_force": [line for line in lines if not line.ended],
        "ended": [line for line in lines if line.ended],
    }
    return render(request, "desk/standing_grants/standing_grants.html", context)


@require_POST
def revoke_standing_grant(request: HttpRequest, pk: str) -> HttpResponse:
    """End one at once."""
    person = require_person(request)
    grant = queries.find_standing_grant(person, pk)
    ended = issuance.revoke_standing_grant(grant_id=grant.pk, person=person)
    messages.success(request, _describe_revocation(request, ended))
    return redirect("reviews:standing_grants")


def _describe_revocation(request: HttpRequest, ended: StandingGrant) -> str:
    """A use that came after the page was opened does not keep a grant in force, since
    ending it only takes authority away; the answer tells of it instead."""
    sentence = f"Revoked after {ended.uses} of {ended.budget} uses"
    shown = request.POST.get("uses", "")
    if shown.isdecimal() and (more := ended.uses - int(shown[:9])) > 0:
        sentence = f"{sentence}, {more} of them since you opened the page"
    return f"{sentence}. What has not begun is refused."
