"""The assurance page, and the answer to a revealed canary."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from journal.errors import NotFound
from reviews.assurance import verdicts
from reviews.choices import RealismFlag
from reviews.desk.components import frame
from reviews.desk.components.frame import require_person

from . import page as queries


@require_safe
def assurance(request: HttpRequest) -> HttpResponse:
    """A person's own canaries, and those of everybody for the people who may see the
    statistics."""
    page = queries.build_assurance_page(
        require_person(request), frame.get_frame(request).now
    )
    return render(request, "reviews/assurance/page.html", {"page": page})


@require_POST
def canary_realism(request: HttpRequest, pk: str, flag: str) -> HttpResponse:
    """Store how real a revealed canary looked to its reviewer."""
    if flag not in set(RealismFlag):
        raise NotFound
    verdicts.record_realism(
        request_id=pk, person=require_person(request), flag=RealismFlag(flag)
    )
    response = redirect("reviews:request_detail", pk)
    response.status_code = 303
    return response
