"""What ran under NOTIFY: the list, marking it as seen, and trying a failure again."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from reviews.evidence import reveals
from reviews.executions import settle

from ..components import retry
from ..components.frame import require_person
from . import page as queries


@require_safe
def announced(request: HttpRequest) -> HttpResponse:
    """What ran under NOTIFY, newest first."""
    page = queries.build_announced_page(require_person(request))
    return render(request, "desk/announced/announced.html", {"page": page})


@require_POST
def announced_seen(request: HttpRequest) -> HttpResponse:
    """Mark one effect as a near miss, one as seen, or all on the page as seen."""
    near, seen = request.POST.get("near_miss", ""), request.POST.get("seen", "")
    ids = [near or seen] if near or seen else request.POST.getlist("shown")
    rows = queries.list_announced_to(require_person(request), ids)
    count = reveals.record_sightings(
        person=require_person(request), executions=rows, near_miss=bool(near)
    )
    if near and count:
        messages.success(
            request, "Near miss reported. It counts against this class of action."
        )
    return redirect("reviews:announced")


@require_POST
def effect_retry(request: HttpRequest, pk: str) -> HttpResponse:
    """Retry an effect that failed and for which nobody was asked."""
    execution = retry.load_execution(require_person(request), pk)
    settle.retry_execution(execution_id=execution.pk, person=require_person(request))
    messages.success(request, "Queued again with the same idempotency key.")
    proposal = execution.proposal
    return redirect("agents:thread", proposal.agent, proposal.thread)
