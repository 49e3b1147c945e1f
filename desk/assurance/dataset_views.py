"""Datasets for evaluation: the list with the form, an answer, and the file."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from assurance.datasets import consent, files
from journal.errors import InvalidArgs, NotPermitted, StaleVersion, TextMissing
from reviews import permissions
from reviews.roles import Permission

from ..components import frame
from ..components.frame import require_person
from .dataset_forms import DatasetForm
from .dataset_page import DatasetsPage, build_datasets_page

CONSENTED = "Consented. The file is being written."
REFUSED = "Refused. Nothing was written."
WITHDRAWN = "Withdrawn. Nothing was written."


@require_http_methods(["GET", "HEAD", "POST"])
def datasets(request: HttpRequest) -> HttpResponse:
    """The datasets that the reader may see; POST asks for one."""
    person = require_person(request)
    if request.method == "POST":
        return _ask(request)
    if not consent.may_see_datasets(person):
        raise NotPermitted("Only administrators and owners of a dataset see this.")
    return _render_page(request, _build_page(request), DatasetForm())


def _ask(request: HttpRequest) -> HttpResponse:
    person = require_person(request)
    permissions.check_permission(person, Permission.MANAGE_DATASETS)
    form = DatasetForm(request.POST)
    if form.is_valid():
        try:
            consent.ask_dataset(person=person, terms=form.terms)
        except InvalidArgs as error:
            form.add_refusal(error)
        else:
            messages.success(
                request, "Dataset requested. Another administrator must consent."
            )
            return redirect("reviews:datasets")
    return _render_page(request, _build_page(request), form, status=422)


@require_POST
def dataset_answer(request: HttpRequest, pk: str) -> HttpResponse:
    """Consent to a dataset of another administrator, refuse it with a reason, or
    withdraw one's own."""
    reason = request.POST.get("reason", "")
    try:
        message = _answer(request, pk, reason)
    except (StaleVersion, TextMissing) as error:
        problem = (
            " ".join(field_error["message"] for field_error in error.errors)
            or error.detail
        )
        page = _build_page(request).with_error(pk, problem, reason)
        return _render_page(request, page, DatasetForm(), status=error.status)
    messages.success(request, message)
    return redirect("reviews:datasets")


def _answer(request: HttpRequest, pk: str, reason: str) -> str:
    person, answer = require_person(request), request.POST.get("answer", "")
    if answer == "consent":
        shown = request.POST.get("shown", "")
        consent.consent_dataset(dataset_id=pk, person=person, shown=shown)
        return CONSENTED
    if answer == "refuse":
        consent.refuse_dataset(dataset_id=pk, person=person, reason=reason)
        return REFUSED
    if answer == "withdraw":
        consent.withdraw_dataset(dataset_id=pk, person=person)
        return WITHDRAWN
    permissions.check_permission(person, Permission.MANAGE_DATASETS)
    raise TextMissing("Choose to consent or to refuse. Nothing was recorded.")


@require_safe
def dataset_file(request: HttpRequest, pk: str) -> HttpResponseBase:
    """A finished dataset as a download, never shown in the browser."""
    dataset = files.open_file(dataset_id=pk, person=require_person(request))
    name = f"counterseal-dataset-{dataset.asked_at:%Y%m%d-%H%M%S}.jsonl.gz"
    return StreamingHttpResponse(
        dataset.parts.stream_bodies(),
        content_type="application/gzip",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
        },
    )


def _build_page(request: HttpRequest) -> DatasetsPage:
    return build_datasets_page(require_person(request), frame.get_frame(request).now)


def _render_page(
    request: HttpRequest, page: DatasetsPage, form: DatasetForm, status: int = 200
) -> HttpResponse:
    context = {"page": page, "form": form}
    return render(request, "desk/assurance/datasets.html", context, status=status)
