"""Files beside a request: drawn, hidden, not to be drawn, and revealed."""

from __future__ import annotations

from typing import Any

from demo.riley import attachments
from reviews.evidence import files
from reviews.models import ApprovalRequest, EvidenceFile
from tests.gallery.scene import SceneGroup, Submission
from tests.gallery.store import StoreGate
from tests.reviews.evidence.hostile_files import (
    CSV,
    JSON,
    PDF,
    PNG,
    build_locked_pdf,
    build_pdf,
)

FILES = SceneGroup("files")
ORDER: dict[str, Any] = {
    "order_id": "78260",
    "total": "59.00",
    "currency": "USD",
    "items": [
        {
            "sku": f"NG-{number}",
            "name": f"Pocket speaker, model {number}, with a case",
            "quantity": 1,
            "price": "59.00",
            "warehouse": "Larkhaven",
            "shelf": f"A-{number % 7}",
            "serial": f"S/N {number * 7919}",
        }
        for number in range(1004, 1064)
    ],
}
SETTINGS = b'{"store": "Northgate", "limits": {"day": 500, "admin": "ada@example.com"}}'


def attach(
    gate: StoreGate, body: bytes, media_type: str, name: str, **more: Any
) -> dict[str, Any]:
    """An item of evidence with a file that the agent has sent."""
    file, _ = files.store_file(agent=gate.agent.slug, media_type=media_type, body=body)
    named = {"sha256": file.sha256, "name": name, **more}
    return {"kind": "file", "source": "the customer", "file": named}


def _show(gate: StoreGate) -> ApprovalRequest:
    order = {**ORDER, "items": ORDER["items"][:1]}
    evidence = [
        attach(gate, attachments.build_photo(), PNG, "speaker-78260.png"),
        attach(gate, attachments.build_invoice(order), PDF, "invoice-78260.pdf"),
        attach(gate, attachments.build_lines(ORDER), CSV, "order-78260.csv"),
        attach(gate, SETTINGS, JSON, "settings.json"),
    ]
    return gate.refund("59.00", evidence=evidence)


def _hide(gate: StoreGate) -> ApprovalRequest:
    card = build_pdf(text="Paid with card 4111 1111 1111 1111")
    evidence = [
        attach(gate, card, PDF, "receipt.pdf"),
        attach(gate, attachments.build_lines(ORDER), CSV, "all.csv", sensitive=True),
        attach(gate, build_locked_pdf(), PDF, "locked.pdf"),
        attach(gate, b"[" * 5000, JSON, "<script>alert(1)</script>.json"),
        attach(gate, build_pdf(200), PDF, "manual.pdf"),
    ]
    return gate.refund("59.00", evidence=evidence)


def _reveal(gate: StoreGate) -> Submission:
    request = _hide(gate)
    sha256 = EvidenceFile.objects.get(finds="card").sha256
    form = {"name": f"file:{sha256}", "reason_code": "decide", "reason": ""}
    return Submission(f"/requests/{request.pk}/reveal/", form)


FILES.add("shown", "speaker-78260.png", _show)
FILES.add("hidden", "it is protected with a password", _hide)
FILES.add("revealed", "Download the file as the agent sent it", _reveal, "sue")
