"""A person's substitute: who decides in their queues until a date, and for whom they
stand in."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from journal.errors import NotPermitted, TextMissing
from policies import substitutes
from policies.models import Person, Queue
from policies.substitutes import Absence
from reviews import permissions

from ..components.frame import require_person
from ..forms import TimeField
from ..people.forms import PasswordCheckedForm

PAGE = "reviews:substitute"
_TIME_ERROR = "Enter a day and a time, such as 2026-12-24 18:00."
_PERSON_ERROR = "Choose one of these people."


class SubstituteForm(PasswordCheckedForm):
    """Who stands in, in which queues, until when in the reader's time zone."""

    substitute = forms.ModelChoiceField(
        Person.objects.none(),
        to_field_name="public_id",
        error_messages={"required": _PERSON_ERROR, "invalid_choice": _PERSON_ERROR},
    )
    queues = forms.ModelMultipleChoiceField(
        Queue.objects.none(),
        to_field_name="name",
        error_messages={
            "required": "Choose at least one queue.",
            "invalid_choice": "Choose among these queues only.",
        },
    )
    until = TimeField(
        label="Until", error_messages={"required": _TIME_ERROR, "invalid": _TIME_ERROR}
    )

    def __init__(self, *args: Any, person: Person, **more: Any) -> None:
        super().__init__(*args, **more)
        self.people = substitutes.list_candidates(person)
        self.own_queues = substitutes.list_own_queues(person)
        fields: dict[str, Any] = self.fields
        fields["substitute"].queryset = Person.objects.filter(
            pk__in=[one.pk for one in self.people]
        )
        fields["queues"].queryset = Queue.objects.filter(
            pk__in=[queue.pk for queue in self.own_queues]
        )

    @property
    def chosen(self) -> list[str]:
        """The names of the queues that are ticked: all of them at first."""
        if self.is_bound:
            return self.data.getlist("queues")  # type: ignore[attr-defined, no-any-return]
        return [queue.name for queue in self.own_queues]

    @property
    def absence(self) -> Absence:
        """What a valid form asks for."""
        sent = self.cleaned_data
        names = [queue.name for queue in sent["queues"]]
        return Absence(sent["substitute"], names, sent["until"])


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password", "one_time_code")
def substitute(request: HttpRequest) -> HttpResponse:
    """The page; POST appoints a substitute, or with `end` ends one before its time."""
    me = require_person(request)
    if request.method != "POST":
        return _render(request, me, SubstituteForm(person=me))
    if "end" in request.POST:
        return _end(request, me)
    if permissions.find_deciding_role(me) is None:
        raise NotPermitted("You decide in no queue, so there is nothing to hand over.")
    if permissions.is_reviewer_stopped(me):
        raise NotPermitted("Your decisions are stopped, so you hand nothing over.")
    form = SubstituteForm(request.POST, person=me)
    if form.is_valid() and form.act(
        request, lambda: substitutes.appoint_substitute(me, form.absence)
    ):
        messages.success(request, f"{form.absence.substitute} stands in for you now.")
        return redirect(PAGE)
    return _render(request, me, form)


def _end(request: HttpRequest, me: Person) -> HttpResponse:
    wanted = request.POST["end"]
    if not (wanted.isdecimal() and len(wanted) < 19):
        raise TextMissing("Choose what is to end. Nothing was changed.")
    substitutes.end_substitution(int(wanted), by=me)
    messages.success(request, "Ended.")
    return redirect(PAGE)


def _render(request: HttpRequest, me: Person, form: SubstituteForm) -> HttpResponse:
    context = {
        "form": form,
        "lines": substitutes.list_substitutions(me),
    }
    status = 422 if form.is_bound else 200
    return render(request, "desk/account/substitute.html", context, status=status)
