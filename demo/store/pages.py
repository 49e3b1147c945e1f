"""The store's pages for people, and its inbox for an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from world.database import Row

from . import database, records, settings

REFRESH_S = 5
# The tables of the page of everything that happened, by their names in the template.
HISTORY = {
    "refunds": "refund",
    "mails": "mail",
    "returns": "return_label",
    "redirections": "redirection",
    "deletions": "deletion",
    "tags": "tag",
    "drafts": "draft",
}
ORDERS = """
SELECT *, total_minor - refunded AS left_minor FROM (
    SELECT purchase.*, customer.name, customer.email,
        (SELECT COALESCE(SUM(amount_minor), 0) FROM refund
         WHERE refund.purchase = purchase.id) AS refunded,
        (SELECT GROUP_CONCAT(label, ', ') FROM tag
         WHERE tag.purchase = purchase.id) AS labels
    FROM purchase JOIN customer ON customer.id = purchase.customer
)
"""
INBOX = """
SELECT id, received_at, sender AS 'from', name, subject FROM message ORDER BY id
"""
MESSAGE = """
SELECT id, received_at, sender AS 'from', name, subject, body FROM message WHERE id = ?
"""


def _query(query: str, *values: str) -> list[Row]:
    with database.reading(settings.DATABASE) as db:
        return db.execute(query, values).fetchall()


def _query_one(query: str, *values: str) -> Row:
    """The only row of a query. Raises Http404 where there is none."""
    rows = _query(query, *values)
    if not rows:
        raise Http404
    return rows[0]


def _list_history(table: str) -> list[Row]:
    """The rows of a table of effects, newest first, each with how often its idempotency
    key was received."""
    return _query(
        f"SELECT {table}.*, call.received FROM {table} JOIN call USING (key)"  # noqa: S608
        f" ORDER BY {table}.id DESC"
    )


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Money first, then everything else that happened, then the orders."""
    context: dict[str, Any] = {
        name: _list_history(table) for name, table in HISTORY.items()
    }
    paid = sum(row["amount_minor"] for row in context["refunds"])
    refreshes = request.GET.get("refresh") != "off"
    context |= {
        "paid": f"{database.format_amount(paid)} {database.CURRENCY}",
        "orders": _query(f"{ORDERS} ORDER BY id DESC"),
        "refresh_s": REFRESH_S if refreshes else None,
        "now": database.now(),
    }
    return render(request, "home.html", context)


@require_safe
def order(request: HttpRequest, number: str) -> HttpResponse:
    """One order with everything that happened to it."""
    context: dict[str, Any] = {
        name: [row for row in _list_history(HISTORY[name]) if row["purchase"] == number]
        for name in ("refunds", "returns", "redirections")
    }
    context["order"] = _query_one(f"{ORDERS} WHERE id = ?", number)
    with database.reading(settings.DATABASE) as db:
        context["lines"] = records.list_lines(db, number)
    return render(request, "order.html", context)


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """What customers wrote."""
    return render(request, "inbox.html", {"messages": _query(INBOX)})


@require_safe
def message(request: HttpRequest, number: str) -> HttpResponse:
    return render(request, "message.html", {"message": _query_one(MESSAGE, number)})


@require_safe
def inbox_json(request: HttpRequest) -> HttpResponse:
    """The inbox for an agent, without the bodies."""
    messages = [dict(row) for row in _query(INBOX)]
    return JsonResponse({"messages": messages})


@require_safe
def message_json(request: HttpRequest, number: str) -> HttpResponse:
    """One message for an agent, exactly as it was sent."""
    return JsonResponse(dict(_query_one(MESSAGE, number)))


@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """Whether the store answers and can read its database."""
    _query("SELECT 1 FROM call LIMIT 1")
    return HttpResponse("ok", content_type="text/plain")


@require_safe
@cache_control(max_age=60)
def style(request: HttpRequest) -> HttpResponse:
    css = Path(__file__).with_name("store.css").read_text()
    return HttpResponse(css, content_type="text/css; charset=utf-8")


def missing(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for an address that does not exist."""
    return render(request, "missing.html", status=404)
