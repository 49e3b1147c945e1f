"""Files of evidence, as inert pictures, and as they were sent to who revealed one."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from journal.errors import NotFound
from reviews.evidence import files, reveals
from reviews.models import EvidenceFile, Proposal, Revision

from ..components import frame
from ..components.frame import require_person
from ..request import load

# Whatever the bytes are, a browser runs nothing of them and tells nobody about them.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}


@require_safe
def evidence_picture(
    request: HttpRequest, pk: str, sha256: str, number: int
) -> HttpResponse:
    """One page of a file, drawn again by the gate. A sensitive file needs the pass of a
    reveal."""
    file, sensitive = _load_file(request, pk, sha256)
    if sensitive and not _has_pass(request, pk, sha256):  # guard: sensitive-picture
        raise NotFound
    picture = files.load_picture(file, number)
    if picture is None:
        raise NotFound
    return HttpResponse(picture, content_type="image/webp", headers=HEADERS)


@require_safe
def evidence_file(request: HttpRequest, pk: str, sha256: str) -> HttpResponse:
    """The file as it was sent, as a download, with the pass of a reveal."""
    file, _ = _load_file(request, pk, sha256)
    body = files.load_body(file)
    if body is None or not _has_pass(request, pk, sha256):  # guard: original-file
        raise NotFound
    name = f"evidence-{sha256.removeprefix('sha256:')[:12]}"
    ending = file.media_type.rpartition("/")[2]
    return HttpResponse(
        body,
        # Never its own type: it leaves the gate as a file and nothing else.
        content_type="application/octet-stream",
        headers={
            **HEADERS,
            "Content-Disposition": f'attachment; filename="{name}.{ending}"',
        },
    )


def _load_file(request: HttpRequest, pk: str, sha256: str) -> tuple[EvidenceFile, bool]:
    """A file that a version of the request shows, and whether it is sensitive. Raises
    NotFound."""
    person = require_person(request)
    loaded = load.load_request(person, pk, frame.get_frame(request).now)
    proposal = loaded.request.proposal
    named = _list_mentions(proposal, sha256)
    file = files.find_file(proposal.agent, sha256) if named else None
    if file is None:
        raise NotFound
    return file, any(named)


def _list_mentions(proposal: Proposal, sha256: str) -> list[bool]:
    """For each mention of the file in a revision, whether it is sensitive there."""
    revisions = Revision.objects.filter(proposal=proposal)
    return [
        item["file"]["sensitive"]
        for evidence in revisions.values_list("evidence", flat=True)
        for item in evidence
        if item.get("file", {}).get("sha256") == sha256
    ]


def _has_pass(request: HttpRequest, pk: str, sha256: str) -> bool:
    token = request.GET.get("pass", "")
    return reveals.has_pass(token, require_person(request), pk, sha256)
