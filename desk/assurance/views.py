"""The assurance page, the answer to a revealed canary, and second reviews."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from assurance import second_reviews
from journal.errors import NotFound, TextMissing
from policies.models import Person
from reviews import canary_verdicts
from reviews.choices import RealismFlag, Verdict
from reviews.models import UpheldReview

from ..components import frame
from ..components.frame import require_person
from . import checks
from . import page as queries


@require_safe
def assurance(request: HttpRequest) -> HttpResponse:
    """A person's own canaries, and those of everybody for the people who may see the
    statistics."""
    page = queries.build_assurance_page(
        require_person(request), frame.get_frame(request).now
    )
    return render(request, "desk/assurance/assurance.html", {"page": page})


@require_POST
def canary_realism(request: HttpRequest, pk: str, flag: str) -> HttpResponse:
    """Store how real a revealed canary looked to its reviewer."""
    if flag not in set(RealismFlag):
        raise NotFound
    canary_verdicts.record_realism(
        request_id=pk, person=require_person(request), flag=RealismFlag(flag)
    )
    response = redirect("reviews:request_detail", pk)
    response.status_code = 303
    return response


@require_safe
def second_reviews_waiting(request: HttpRequest) -> HttpResponse:
    """The second reviews and the disagreements that wait for this person."""
    page = checks.build_checks_page(
        require_person(request), frame.get_frame(request).now
    )
    return render(request, "desk/assurance/checks.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
def second_review(request: HttpRequest, pk: int) -> HttpResponse:
    """One second review; POST answers it, or settles a disagreement."""
    person, now = require_person(request), frame.get_frame(request).now
    page = checks.build_check_page(person, pk, now)
    if request.method != "POST":
        return _render_check(request, page)
    reason = request.POST.get("reason", "")
    answer = request.POST.get("answer", "")
    try:
        _record(person, page, answer, reason)
    except TextMissing as error:
        page = checks.build_check_page(
            person, pk, now, error=error.detail, reason=reason
        )
        return _render_check(request, page, status=error.status)
    messages.success(request, "Recorded. Nothing about the request changes.")
    return redirect("reviews:second_reviews")


def _record(person: Person, page: checks.CheckPage, answer: str, reason: str) -> None:
    if page.verdicts:
        if answer not in set(UpheldReview):
            raise TextMissing("Choose whose verdict was right. Nothing was recorded.")
        second_reviews.record_ruling(
            decision_id=page.pk,
            person=person,
            upheld=UpheldReview(answer),
            reason=reason,
        )
        return
    if answer not in {Verdict.APPROVE, Verdict.REJECT}:
        raise TextMissing("Choose approve or reject. Nothing was recorded.")
    second_reviews.record_answer(
        decision_id=page.pk, person=person, verdict=Verdict(answer), reason=reason
    )


def _render_check(
    request: HttpRequest, page: checks.CheckPage, status: int = 200
) -> HttpResponse:
    return render(request, "desk/assurance/check.html", {"page": page}, status=status)
