"""SCIM 2.0 for identity providers (docs/provisioning.md): people and groups. A call
needs a token that two administrators gave the provider; nobody's session counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from journal import canonical
from journal.errors import EncodedBody, InvalidInput, NotFound
from policies.models import ProvisionedGroup, ProvisioningToken
from reviews.administration import (
    provisioned_groups,
    provisioning,
    provisioning_tokens,
)

from . import answers, discovery, filters, patching, resources

USUAL_RESULTS = 100
View = Callable[..., HttpResponse]


def answer_provider(*methods: str) -> Callable[[View], View]:
    """Make a view that only the provider may call, by its token and these methods."""

    def wrap(view: View) -> View:
        checked = require_http_methods(list(methods))(view)

        @csrf_exempt
        @login_not_required
        @wraps(view)
        def answer(request: HttpRequest, *args: Any, **values: Any) -> HttpResponse:
            kind, _, text = request.headers.get("Authorization", "").partition(" ")
            given = text.strip() if kind.lower() == "bearer" else ""
            token = provisioning_tokens.authenticate_token(given)
            request.auth = token  # type: ignore[attr-defined]
            return checked(request, *args, **values)

        return answer

    return wrap


@answer_provider("GET", "HEAD")
def service_config(request: HttpRequest) -> HttpResponse:
    """What the endpoint can do."""
    return answers.build_answer(discovery.build_service_config())


@answer_provider("GET", "HEAD")
def resource_types(request: HttpRequest) -> HttpResponse:
    """The kinds of resources."""
    documents = discovery.list_resource_types()
    return answers.build_list(documents, total=len(documents))


@answer_provider("GET", "HEAD")
def schemas(request: HttpRequest) -> HttpResponse:
    """The attributes of each kind."""
    documents = discovery.list_schemas()
    return answers.build_list(documents, total=len(documents))


@answer_provider("GET", "HEAD")
def resource_type(request: HttpRequest, name: str) -> HttpResponse:
    """One kind of resources."""
    return _find_document(discovery.list_resource_types(), name)


@answer_provider("GET", "HEAD")
def schema(request: HttpRequest, name: str) -> HttpResponse:
    """The attributes of one kind."""
    return _find_document(discovery.list_schemas(), name)


@answer_provider("GET", "HEAD", "POST")
def users(request: HttpRequest) -> HttpResponse:
    """The people, by filter and page; POST adds one."""
    if request.method != "POST":
        rows = provisioning.select_users()
        rows = rows.filter(_read_filter(request, filters.OF_USERS))
        return _answer_page(request, rows, resources.build_users)
    wanted = patching.read_user(_read_body(request))
    person = provisioning.create_user(wanted, token=_get_token(request))
    return _answer_one(request, resources.build_user(person), 201)


@answer_provider("GET", "HEAD", "PUT", "PATCH", "DELETE")
def user(request: HttpRequest, public_id: str) -> HttpResponse:
    """One person. DELETE deactivates the account."""
    if request.method == "DELETE":
        provisioning.remove_user(public_id, token=_get_token(request))
        return HttpResponse(status=204)
    if request.method not in {"PUT", "PATCH"}:
        person = provisioning.load_user(public_id)
        return _answer_one(request, resources.build_user(person))
    body, patches = _read_body(request), request.method == "PATCH"
    person = provisioning.change_user(
        public_id,
        lambda now: (
            patching.patch_user(now, body) if patches else patching.read_user(body, now)
        ),
        token=_get_token(request),
    )
    return _answer_one(request, resources.build_user(person))


@answer_provider("GET", "HEAD", "POST")
def groups(request: HttpRequest) -> HttpResponse:
    """The groups, by filter and page; POST adds one."""
    if request.method != "POST":
        rows = provisioned_groups.select_groups()
        rows = rows.filter(_read_filter(request, filters.OF_GROUPS))
        return _answer_page(request, rows, lambda page: _build_groups(request, page))
    wanted = patching.read_group(_read_body(request))
    made = provisioned_groups.create_group(wanted, token=_get_token(request))
    return _answer_one(request, _build_groups(request, [made])[0], 201)


@answer_provider("GET", "HEAD", "PUT", "PATCH", "DELETE")
def group(request: HttpRequest, public_id: str) -> HttpResponse:
    """One group. A PATCH answers 204: a group may have thousands of members."""
    if request.method == "DELETE":
        provisioned_groups.remove_group(public_id, token=_get_token(request))
        return HttpResponse(status=204)
    if request.method not in {"PUT", "PATCH"}:
        known = provisioned_groups.load_group(public_id)
        return _answer_one(request, _build_groups(request, [known])[0])
    body, patches = _read_body(request), request.method == "PATCH"
    changed = provisioned_groups.change_group(
        public_id,
        lambda now: (
            patching.patch_group(now, body)
            if patches
            else patching.read_group(body, now)
        ),
        token=_get_token(request),
    )
    if patches:
        return HttpResponse(status=204)
    return _answer_one(request, _build_groups(request, [changed])[0])


def _get_token(request: HttpRequest) -> ProvisioningToken:
    token: ProvisioningToken = request.auth  # type: ignore[attr-defined]
    return token


def _find_document(documents: list[dict[str, Any]], name: str) -> HttpResponse:
    for document in documents:
        if document["id"] == name:
            return answers.build_answer(document)
    raise NotFound(f"Nothing is called {name[:100]}.")


def _read_body(request: HttpRequest) -> Any:
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise EncodedBody
    return canonical.parse(request.body)


def _read_filter(
    request: HttpRequest, conditions: Mapping[str, filters.Condition]
) -> Q:
    text = request.GET.get("filter", "")
    return filters.parse_filter(text, conditions) if text else Q()


def _build_groups(
    request: HttpRequest, page: Sequence[ProvisionedGroup]
) -> list[dict[str, Any]]:
    members = resources.is_wanted("members", *_read_attributes(request))
    return resources.build_groups(page, members=members)


def _answer_page(
    request: HttpRequest,
    rows: Any,
    build: Callable[[Sequence[Any]], list[dict[str, Any]]],
) -> HttpResponse:
    """One page of the rows: `startIndex` counts from 1 (RFC 7644, 3.4.2.4)."""
    start = max(1, _read_number(request, "startIndex", 1))
    count = max(0, _read_number(request, "count", USUAL_RESULTS))
    page = list(rows[start - 1 : start - 1 + min(count, discovery.MOST_RESULTS)])
    chosen = [_choose_attributes(request, resource) for resource in build(page)]
    return answers.build_list(chosen, total=rows.count(), start=start)


def _read_number(request: HttpRequest, name: str, usual: int) -> int:
    text = request.GET.get(name, "")
    try:
        number = int(text) if text else usual
    except ValueError:
        raise InvalidInput(f"{name}: must be a whole number. Nothing was read.") from (
            None
        )
    return min(number, 10**9)


def _choose_attributes(
    request: HttpRequest, resource: dict[str, Any]
) -> dict[str, Any]:
    return resources.choose_attributes(resource, *_read_attributes(request))


def _read_attributes(request: HttpRequest) -> tuple[str, str]:
    """The attributes that a query wants, and those that it does not."""
    given = request.GET
    return given.get("attributes", ""), given.get("excludedAttributes", "")


def _answer_one(
    request: HttpRequest, resource: dict[str, Any], status: int = 200
) -> HttpResponse:
    return answers.build_answer(
        _choose_attributes(request, resource),
        status,
        location=resource["meta"]["location"],
    )
