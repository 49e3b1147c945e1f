"""The endpoint by which an agent sends a file that its proposals then name."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router

from agents.schemas.proposals import EvidenceFileOut
from journal.errors import EncodedBody
from reviews.evidence import files

from .auth import AgentAuth, get_calling_agent

router = Router(auth=AgentAuth(), tags=["agents"], by_alias=True)
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            media_type: {"schema": {"type": "string", "format": "binary"}}
            for media_type in files.MEDIA_TYPES
        },
    }
}


@router.post(
    "/evidence",
    response={201: EvidenceFileOut, 200: EvidenceFileOut},
    openapi_extra=BODY,
)
def upload_evidence(request: HttpRequest) -> HttpResponse:
    """Send one file as the body, with its type as `Content-Type`. A repeated call with
    the same bytes answers 200. A proposal names the file by the `sha256` of the answer;
    a file that none has named for a day is deleted. A file that is damaged, protected
    or too large to draw is stored, and `problem` says why people cannot see it."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise EncodedBody
    agent = get_calling_agent(request)
    file, is_new = files.store_file(
        agent=agent.slug, media_type=request.content_type or "", body=request.body
    )
    about = files.describe_file(file)
    return JsonResponse(
        {
            **{name: about[name] for name in ("sha256", "media_type", "size")},
            "problem": file.problem,
            "sensitive": files.is_sensitive(file),
            "pictures": len(about.get("pictures", [])),
            **{name: about.get(name, 0) for name in ("count", "rows", "columns")},
        },
        status=201 if is_new else 200,
    )
