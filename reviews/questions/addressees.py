"""Who may read and who may answer a question.

An answer has no effect, so neither the agent's owner nor an administrator who is asked
by name is kept from answering. A queue's questions belong to those who decide there.
"""

from __future__ import annotations

from django.db.models import Q, QuerySet

from journal.clock import ClockTimestamp
from journal.errors import DomainError, NotPermitted
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import QuestionStatus
from reviews.models import Question
from reviews.roles import Permission

ANSWERING_ROLES = (Role.REVIEWER, Role.SUPERVISOR)


def select_visible(person: Person) -> QuerySet[Question]:
    """Questions to the person, to their queues and of their own agents, or all by
    role."""
    questions = Question.objects.select_related("queue", "person", "settled_by")
    if permissions.has_permission(person, Permission.SEE_ALL):
        return questions
    return questions.filter(
        Q(person=person)
        | Q(queue__in=permissions.queues_of(person))
        | Q(owner=person.public_id)
    )


def select_answerable(person: Person) -> QuerySet[Question]:
    """The open questions that `check_can_answer` lets this person answer; a test
    compares the two."""
    mine = Q(person=person)
    if permissions.find_deciding_role(person) is not None:
        mine |= Q(queue__in=permissions.queues_of(person))
    questions = Question.objects.select_related("queue", "person").filter(
        mine, status=QuestionStatus.OPEN, expires_at__gt=ClockTimestamp()
    )
    return questions.none() if permissions.is_reviewer_stopped(person) else questions


def check_can_answer(person: Person, question: Question) -> None:
    """Raises NotPermitted unless the person may answer the question."""
    if question.person_id is not None:
        if question.person_id != person.pk or not person.is_active:
            raise NotPermitted(
                "This asks somebody else. Nothing was recorded. They must answer it."
            )
    else:
        if permissions.find_deciding_role(person) is None:
            raise NotPermitted(
                "Only reviewers and supervisors answer what a queue is asked. Nothing"
                " was recorded."
            )
        if question.queue_id not in permissions.queues_of(person):
            raise NotPermitted(
                "You are not admitted to the queue that this asks. Nothing was"
                " recorded."
            )
    if permissions.is_reviewer_stopped(person):
        raise NotPermitted(
            "Your decisions are stopped, and so are your answers. Nothing was"
            " recorded. An administrator must lift the stop."
        )


def describe_why_cannot_answer(person: Person, question: Question) -> str:
    """A sentence that says why the person may not answer; empty when they may."""
    try:
        check_can_answer(person, question)
    except DomainError as error:
        return error.cause
    return ""


def format_addressee(question: Question) -> str:
    """Whom a question asks, as its agent writes it: a queue's name, or `@` and a
    login."""
    if question.person is not None:
        return f"@{question.person.username}"
    return str(question.addressee)


def describe_addressee(question: Question) -> str:
    """Whom a question asks, as people read it."""
    if question.queue is not None:
        return f"the queue {question.queue.title}"
    return str(question.person)


def list_addressees(question: Question) -> list[Person]:
    """The active people with an address who may answer."""
    if question.person_id is None:
        return permissions.list_deciders(question.queue_id, roles=ANSWERING_ROLES)
    people = permissions.list_people_with_roles([question.person_id])
    return [person for person in people if person.is_active and person.email]
