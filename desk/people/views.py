"""People: the list, an invitation, one person with what they may do, the answer of a
second administrator, and the page behind a password link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from journal.errors import (
    InvalidInput,
    NotFound,
    ReauthenticationRequired,
    TextMissing,
)
from policies import password_links, people, sign_ins
from policies.models import Person
from policies.money import Money, format_amount
from reviews import permissions
from reviews.administration import accounts, authority
from reviews.choices import AuthorityKind
from reviews.models import AuthorityChange
from reviews.roles import Permission

from ..components import frame
from ..components.frame import require_person
from ..components.sign_in import sign_person_in
from . import page as pages
from .forms import (
    AuthorityAnswerForm,
    AuthorityForm,
    InvitationForm,
    OwnPasswordForm,
    PasswordForm,
    SteppedUpForm,
)

LASTING_ACTS = (AuthorityKind.REACTIVATE, AuthorityKind.RESET, AuthorityKind.FACTOR)
WAITS = "Proposed. Another administrator must confirm it."
LINK = "password_link"  # in the session: shown once, on the page that comes next


@require_safe
def people_list(request: HttpRequest) -> HttpResponse:
    """Everybody with an account, and what waits for a second administrator."""
    page = pages.build_people_page(
        require_person(request), frame.get_frame(request).now
    )
    return render(request, "desk/people/people.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password", "one_time_code")
def invite(request: HttpRequest) -> HttpResponse:
    """Invite a person."""
    by = require_person(request)
    permissions.check_permission(by, Permission.MANAGE_PEOPLE)
    queues = pages.list_queue_choices()
    form = InvitationForm(request.POST or None, queues=queues)
    if form.is_valid():
        invitation, reason = form.invitation, form.cleaned_data["reason"]
        if form.act(
            request,
            lambda: authority.invite_person(
                invitation=invitation, reason=reason, by=by
            ),
        ):
            person = Person.objects.get(username=invitation.username)
            return _lead_to_person(request, person, linked=True)
    status = 422 if form.is_bound else 200
    return render(request, "desk/people/invite.html", {"form": form}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password", "one_time_code")
def person(request: HttpRequest, who: str) -> HttpResponse:
    """One person; POST changes what they may do."""
    by, them = require_person(request), pages.load_person(who)
    queues = pages.list_queue_choices()
    if request.method != "POST":
        permissions.check_permission(by, Permission.SEE_PEOPLE)
        now = authority.load_authority(them)
        form = AuthorityForm(initial=_build_initial(now), queues=queues)
        return _render_person(request, them, form)
    permissions.check_permission(by, Permission.MANAGE_PEOPLE)
    form = AuthorityForm(request.POST, queues=queues)
    if form.is_valid():
        proposed: list[AuthorityChange | None] = []
        wanted, reason = form.authority, form.cleaned_data["reason"]

        def change() -> None:
            proposed.append(
                authority.change_authority(
                    person=them, wanted=wanted, reason=reason, by=by
                )
            )

        if form.act(request, change):
            messages.success(request, WAITS if proposed[0] else "Changed.")
            return redirect("reviews:person", who)
    return _render_person(request, them, form)


def _build_initial(now: authority.Authority) -> dict[str, Any]:
    limit: Money | None = now.ceiling
    return {
        "role": now.role,
        "queues": sorted(now.queues),
        "email": now.email,
        "ceiling": format_amount(limit) if limit else "",
        "currency": limit.currency if limit else "",
    }


@require_POST
@sensitive_post_parameters("password", "one_time_code")
def person_access(request: HttpRequest, who: str) -> HttpResponse:
    """End the sessions of an account or deactivate it, at once; propose to reactivate
    it, a new password, or to remove a lost second factor."""
    by, them = require_person(request), pages.load_person(who)
    permissions.check_permission(by, Permission.MANAGE_PEOPLE)
    act, form = request.POST.get("act", ""), SteppedUpForm(request.POST)
    acts: dict[str, tuple[Callable[[], object], str]] = {
        "deactivate": (
            lambda: accounts.deactivate_account(
                person=them, by=by, reason=form.cleaned_data["reason"]
            ),
            "Deactivated. Sessions, tokens and approvals that have not run have ended.",
        ),
        "sessions": (
            lambda: sign_ins.end_sign_ins(
                them, by=by, reason=form.cleaned_data["reason"]
            ),
            "Ended. The person can sign in again.",
        ),
        **{
            kind.value: (
                lambda kind=kind: authority.propose_access(  # type: ignore[misc]
                    person=them, kind=kind, reason=form.cleaned_data["reason"], by=by
                ),
                WAITS,
            )
            for kind in LASTING_ACTS
        },
    }
    if act not in acts:
        raise TextMissing("Choose what happens to the account. Nothing was changed.")
    operation, done = acts[act]
    if form.is_valid() and form.act(request, operation):
        messages.success(request, done)
        return redirect("reviews:person", who)
    return _render_person(request, them, None, access=form)


@require_POST
@sensitive_post_parameters("password", "one_time_code")
def authority_answer(request: HttpRequest, pk: int) -> HttpResponse:
    """Confirm the change of another administrator, refuse it with a reason, or withdraw
    one's own."""
    by = require_person(request)
    permissions.check_permission(by, Permission.MANAGE_PEOPLE)
    change = AuthorityChange.objects.select_related("person").filter(pk=pk).first()
    if change is None:
        raise NotFound
    answer, form = request.POST.get("answer", ""), AuthorityAnswerForm(request.POST)
    reason = request.POST.get("reason", "")
    answers: dict[str, Callable[[], object]] = {
        "confirm": lambda: authority.confirm_change(change_id=pk, by=by),
        "refuse": lambda: authority.refuse_change(change_id=pk, by=by, reason=reason),
        "withdraw": lambda: authority.withdraw_change(change_id=pk, by=by),
    }
    if answer not in answers:
        raise TextMissing("Choose to confirm or to refuse. Nothing was recorded.")
    if form.is_valid() and form.act(request, answers[answer]):
        if answer == "confirm":
            linked = change.kind in authority.WITH_LINK
            return _lead_to_person(request, change.person, linked=linked)
        messages.success(request, "Recorded. Nothing was changed.")
        return redirect("reviews:person", change.person.public_id)
    return _render_person(request, change.person, None, answer=form)


def _lead_to_person(
    request: HttpRequest, person: Person, *, linked: bool
) -> HttpResponse:
    """To the person's page, which shows a new link once. `linked` says that what was
    done may have made one: an account without a password is not enough, as those of an
    identity provider have none."""
    person.refresh_from_db()
    awaited = linked and password_links.is_awaited(person)  # guard: password-link
    if awaited and password_links.is_mailed():
        messages.success(request, f"Done. The link goes to {person.email}.")
    elif awaited:
        request.session[LINK] = [person.public_id, password_links.create_token(person)]
        messages.success(request, "Done. Send the link below to the person.")
    else:
        waits = person.authority_changes.filter(settled_at__isnull=True).exists()
        messages.success(request, WAITS if waits else "Confirmed. It is in force.")
    return redirect("reviews:person", person.public_id)


def _render_person(
    request: HttpRequest,
    them: Person,
    form: AuthorityForm | None,
    access: SteppedUpForm | None = None,
    answer: AuthorityAnswerForm | None = None,
) -> HttpResponse:
    reader = require_person(request)
    page = pages.build_person_page(reader, them, frame.get_frame(request).now)
    if form is None:
        now = _build_initial(authority.load_authority(them))
        form = AuthorityForm(initial=now, queues=pages.list_queue_choices())
    link = ""
    who, token = request.session.get(LINK) or ("", "")
    if who == them.public_id:
        del request.session[LINK]
        path = reverse("reviews:password_link", args=[token])
        link = f"{settings.COUNTERSEAL.base_url}{path}"
    context = {
        "page": page,
        "form": form,
        "access": access or SteppedUpForm(),
        "answer": answer or AuthorityAnswerForm(),
        "link": link,
        "mailed": password_links.is_mailed(),
    }
    sent = form.is_bound or access is not None or answer is not None
    response = render(
        request, "desk/people/person.html", context, status=422 if sent else 200
    )
    response["Cache-Control"] = "no-store"
    return response


@login_not_required
@never_cache
@sensitive_post_parameters("password", "again")
@require_http_methods(["GET", "HEAD", "POST"])
def password_link(request: HttpRequest, token: str) -> HttpResponse:
    """Where an invited person, or one whose password was reset, chooses a password;
    then they are signed in. 404 for a link that is over."""
    them = password_links.check_token(token)
    form = PasswordForm(request.POST or None)
    if form.is_valid():
        try:
            them = password_links.choose_password(token, form.cleaned_data["password"])
        except InvalidInput as error:
            form.add_refusal(error)
        else:
            messages.success(request, "Your password is set.")
            return sign_person_in(request, them)
    context = {"form": form, "them": them}
    status = 422 if form.is_bound else 200
    return render(request, "desk/people/password.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("present", "password", "again")
def own_password(request: HttpRequest) -> HttpResponse:
    """Choose another password; other sessions and the tokens end."""
    me = require_person(request)
    form = OwnPasswordForm(request.POST or None)
    if form.is_valid():
        try:
            people.confirm_password(request, me, form.cleaned_data["present"])
            people.change_own_password(me, form.cleaned_data["password"])
        except ReauthenticationRequired:
            form.add_error("present", "That password is not right.")
        except InvalidInput as error:
            form.add_refusal(error)
        else:
            before = str(request.session.session_key)
            update_session_auth_hash(request, me)
            sign_ins.follow_key(before, str(request.session.session_key))
            messages.success(request, "Your password is changed.")
            return redirect("reviews:me")
    status = 422 if form.is_bound else 200
    return render(
        request, "desk/people/own_password.html", {"form": form}, status=status
    )
