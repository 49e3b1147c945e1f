"""The Python client, from the gate itself: a page with the lines to paste, which pip
can read as well (`--find-links`), and the wheel."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from . import client_wheel

FIRST_CALL = """\
from counterseal_client import Gate


@Gate().tool
def issue_credit(customer: str, amount: str) -> str:
    return f"{customer} got {amount}"


print(issue_credit("c-1", "89.00 USD"))
"""


def build_install_line() -> str:
    """What a person types to install the client."""
    path = reverse("client_wheel", args=[client_wheel.build_name()])
    return " ".join(["pip install", f"{settings.COUNTERSEAL.base_url}{path}"])


@login_not_required
@require_safe
def client(request: HttpRequest) -> HttpResponse:
    """How a program gets the client, and a first call. Public, as the wheel is."""
    context = {
        "install": build_install_line(),
        "code": FIRST_CALL,
        "wheel": client_wheel.build_wheel(),
        "local": settings.COUNTERSEAL.local,
        "address": settings.COUNTERSEAL.base_url,
    }
    return render(request, "client.html", context)


@login_not_required
@require_safe
def download_wheel(request: HttpRequest, name: str) -> HttpResponse:
    """The wheel. Raises Http404 for the name of another version."""
    wheel = client_wheel.build_wheel()
    if name != wheel.name:
        raise Http404
    return HttpResponse(
        wheel.content,
        content_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{wheel.name}"'},
    )
