"""The queues and who decides in them, now or at a moment of the past, and what the
decision panel offers in each."""

from __future__ import annotations

from datetime import timedelta

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from journal import canonical
from journal.errors import NotFound
from policies.models import Queue
from reviews import permissions
from reviews.administration import past_staff, queue_presets
from reviews.administration.queue_presets import OfferedPreset
from reviews.roles import Permission

from ..components import frame
from ..components.frame import require_person
from ..forms import TimeField
from .forms import PresetForm, build_initial
from .page import build_queues_page

_TIME_ERROR = "Enter a day and a time up to now, such as 2026-11-25 14:00."


class MomentForm(forms.Form):
    """A moment of the past, in the reader's time zone."""

    at = TimeField(error_messages={"required": _TIME_ERROR, "invalid": _TIME_ERROR})


@require_safe
def queues(request: HttpRequest) -> HttpResponse:
    """Every queue with its people, and where too few of them are left."""
    page = build_queues_page(require_person(request))
    return render(request, "desk/queues/queues.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password", "one_time_code")
def queue_preset(request: HttpRequest, name: str) -> HttpResponse:
    """What the decision panel offers in one queue; POST changes it."""
    by = require_person(request)
    permissions.check_permission(by, Permission.SEE_PEOPLE)
    queue = _load_queue(name)
    preset = queue_presets.read_preset(queue)
    form = PresetForm(initial=build_initial(preset))
    if request.method == "POST":
        permissions.check_permission(by, Permission.MANAGE_PEOPLE)
        form = PresetForm(request.POST)
        if form.is_valid() and form.act(
            request,
            lambda: queue_presets.change_preset(
                queue_name=name,
                reasons=form.reasons,
                texts=form.texts,
                reason=form.cleaned_data["reason"],
                by=by,
                shown=form.cleaned_data["shown"],
            ),
        ):
            messages.success(request, "Changed. Panels opened from now on offer this.")
            return redirect("reviews:queue_preset", name)
        preset = queue_presets.read_preset(_load_queue(name))
    context = {
        "queue": queue,
        "form": form,
        "preset": preset,
        "shown": canonical.format_shown(preset.parts),
        "meanwhile": _list_changed_parts(form, preset),
        "may_manage": permissions.has_permission(by, Permission.MANAGE_PEOPLE),
    }
    status = 422 if form.is_bound else 200
    template = "desk/queues/queue_preset.html"
    return render(request, template, context, status=status)


def _list_changed_parts(
    form: PresetForm, preset: OfferedPreset
) -> list[tuple[str, str]]:
    """What another administrator changed since a refused form was drawn, as it is
    now."""
    shown, parts = str(form.data.get("shown", "")), preset.parts
    changed = canonical.list_changed_parts(shown, parts) if shown else []
    return [(name, ", ".join(parts[name]) or "none") for name in changed]


def _load_queue(name: str) -> Queue:
    queue = Queue.objects.filter(name=name).select_related("preset").first()
    if queue is None:
        raise NotFound
    return queue


@require_safe
def past_queue(request: HttpRequest, name: str) -> HttpResponse:
    """Who could decide in a queue at the moment `at`; without it, a form for it, which
    offers yesterday."""
    permissions.check_permission(require_person(request), Permission.SEE_PEOPLE)
    queue = _load_queue(name)
    now, starts_at = frame.get_frame(request).now, past_staff.find_log_start()
    yesterday = max(now - timedelta(days=1), starts_at or now)
    form = MomentForm(
        request.GET if "at" in request.GET else None,
        initial={"at": f"{timezone.localtime(yesterday):%Y-%m-%dT%H:%M:%S}"},
    )
    context = {"queue": queue, "form": form, "starts_at": starts_at}
    if form.is_valid():
        at = form.cleaned_data["at"]
        if at > now:
            form.add_error("at", _TIME_ERROR)
        elif starts_at is None or at < starts_at.replace(microsecond=0):
            context |= {"at": at, "too_early": True}
        else:
            context |= {"at": at, "staff": past_staff.list_past_staff(queue, at)}
    status = 422 if form.is_bound and form.errors else 200
    return render(request, "desk/queues/past_queue.html", context, status=status)
