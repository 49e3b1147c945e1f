"""The workload page and a supervisor's ways to relieve the desk."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from reviews import workload

from ..components import frame
from ..components.frame import require_person
from . import page as queries


@require_safe
def load(request: HttpRequest) -> HttpResponse:
    """Who is at the desk or could be, what is about to expire, and who asks the
    most."""
    page = queries.build_workload_page(
        require_person(request), frame.get_frame(request).now
    )
    context = {"page": page, "duty_rule": queries.DUTY_RULE}
    return render(request, "desk/workload/workload.html", context)


@require_POST
def load_extend(request: HttpRequest) -> HttpResponse:
    """Extend all requests that expire within half an hour."""
    who = require_person(request)
    wanted = queries.list_due_requests(who, frame.get_frame(request).now)
    count = workload.extend_deadlines(request_ids=wanted, person=who)
    messages.success(request, _describe_extension(count, len(wanted)))
    return redirect("reviews:load")


def _describe_extension(count: int, wanted: int) -> str:
    if not wanted:
        return "No deadline in the next 30 minutes can be extended."
    passed = f" {wanted - count} could not be extended." if count < wanted else ""
    return f"Extended {count} {'request' if count == 1 else 'requests'}.{passed}"


@require_POST
def load_share(request: HttpRequest) -> HttpResponse:
    """Assign the most urgent few to a colleague."""
    who = require_person(request)
    to = queries.load_colleague(who, request.POST.get("to", ""))
    wanted = queries.list_requests_to_give(who, to, frame.get_frame(request).now)
    count = workload.assign_requests(request_ids=wanted, person=who, to=to)
    messages.success(request, _describe_sharing(count, str(to)))
    return redirect("reviews:load")


def _describe_sharing(count: int, to: str) -> str:
    if not count:
        return f"There is no unclaimed request that {to} can decide."
    what = "request" if count == 1 else "requests"
    return f"{count} {what} assigned to {to}, who is notified. Others can still decide."
