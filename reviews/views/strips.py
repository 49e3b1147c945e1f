"""The state strip of a request alone, with R8 beside it where that changed: what an
open page asks for again and again, and what its hold is answered with."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from reviews.desk.components import htmx
from reviews.desk.request import commit
from reviews.desk.request.load import Loaded
from reviews.queries.review import ReviewPage

from . import verdicts

TEMPLATE = "reviews/request.html#live"
FOLLOWING = "reviews/_following.html"


def answer(request: HttpRequest, loaded: Loaded, told: str = "") -> HttpResponse:
    """The strip, or 204 while it is as the page has it. Content being read never
    moves. `told` is what a person's own act did."""
    tag = request.headers.get("If-None-Match", "").strip('"')
    key, _, _ = tag.partition(".")
    changed = bool(key) and key != loaded.key
    said = [told, loaded.said if changed else "", loaded.lost_since(tag) if key else ""]
    before = commit.on_screen(request, loaded)
    read = before.version if before else verdicts.version_of(key)
    page = ReviewPage(
        loaded,
        read=read or loaded.request.version,
        screen=None if before and loaded.able else read,
        said=" ".join(one for one in said if one),
    )
    commit.fit(request, page, partial=True)
    changed = changed or page.target_moved
    context = {"page": page, "changed": changed, "is_live": True}
    return htmx.fragment(
        request, TEMPLATE, context, etag=loaded.etag, settled=page.over
    )


def following(request: HttpRequest, loaded: Loaded) -> HttpResponse:
    """The link to what the agent did next; 204 while it may come, and then no more is
    asked for."""
    page = ReviewPage(loaded)
    if page.watches:
        return HttpResponse(status=204)
    return render(request, FOLLOWING, {"page": page}, status=htmx.STOP_POLLING)
