"""Questions of agents: the list, and one with its form."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from journal.errors import DomainError, InvalidInput, build_field_error
from policies.models import Person
from reviews.questions import questions as operations

from ..components import frame, htmx
from ..components.frame import require_person
from . import page as queries
from .fields import AnswerForm, build_form

NOTE_REQUIRED = "Say why you decline. The agent reads it."


@require_safe
def questions(request: HttpRequest) -> HttpResponse:
    """What agents ask this person and their queues, and what ended lately."""
    now = frame.get_frame(request).now
    page = queries.build_questions_page(require_person(request), now)
    return render(request, "desk/questions/questions.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
def question(request: HttpRequest, pk: str) -> HttpResponse:
    """One question; POST answers or declines it."""
    person, now = require_person(request), frame.get_frame(request).now
    page = queries.build_question_page(person, pk, now)
    problem = None
    if request.method == "POST":
        problem = _settle(request, person, page)
        if problem is None:
            return redirect("reviews:questions")
        page = queries.build_question_page(person, pk, now)
    context = {
        "page": page,
        "form": _build_shown_form(request, page, problem),
        "note": request.POST.get("note", ""),
        "problem": problem,
        "note_error": _find_note_error(problem),
    }
    status = htmx.compute_form_status(problem, sent=request.method == "POST")
    return render(request, "desk/questions/question.html", context, status=status)


def _settle(
    request: HttpRequest, person: Person, page: queries.QuestionPage
) -> DomainError | None:
    """Answer or decline as the pressed button says; the refusal, if any."""
    if request.POST.get("act") == "decline":
        return htmx.catch_refusal(lambda: _decline(request, person, page))
    return htmx.catch_refusal(lambda: _answer(request, person, page))


def _answer(request: HttpRequest, person: Person, page: queries.QuestionPage) -> None:
    pk, schema = page.question.pk, page.question.schema
    answer, unreadable = build_form(schema, sent=request.POST).read()
    if unreadable and not page.why_not:  # else the operation says why not
        raise InvalidInput(errors=unreadable)
    operations.answer_question(question_id=pk, person=person, answer=answer)
    messages.success(request, "Answered. The agent gets your answer.")


def _decline(request: HttpRequest, person: Person, page: queries.QuestionPage) -> None:
    note, pk = request.POST.get("note", ""), page.question.pk
    if not note.strip() and not page.why_not:
        raise InvalidInput(errors=[build_field_error("note", NOTE_REQUIRED)])
    operations.decline_question(question_id=pk, person=person, note=note)
    messages.success(request, "Declined. The agent gets your reason.")


def _build_shown_form(
    request: HttpRequest, page: queries.QuestionPage, problem: DomainError | None
) -> AnswerForm:
    """The form as it was sent, an answer that was given, or the form's defaults."""
    question = page.question
    sent = request.POST if request.method == "POST" else None
    errors = [e for e in problem.errors if e["path"] != "note"] if problem else []
    return build_form(question.schema, sent=sent, answer=question.answer, errors=errors)


def _find_note_error(problem: DomainError | None) -> str:
    errors = problem.errors if problem else []
    return " ".join(error["message"] for error in errors if error["path"] == "note")
