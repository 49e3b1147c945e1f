"""What a customer attached to a message about a damaged item, and what the store adds:
a photo, an invoice and the lines of the order. Made here, always the same bytes."""

from __future__ import annotations

import csv
import io
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from counterseal_client import File

WIDTH, HEIGHT = 320, 240
BACKGROUND, CASE, GRILLE, FOOT = (
    (224, 219, 208),
    (52, 60, 72),
    (120, 128, 140),
    (20, 22, 26),
)
Color = tuple[int, int, int]


def list_attachments(order: Mapping[str, Any]) -> Iterator[File]:
    """The files of a message about a damaged item of this order."""
    number = order["order_id"]
    yield File(
        build_photo(),
        name=f"speaker-{number}.png",
        kind="photo",
        source="the customer",
    )
    yield File(
        build_invoice(order),
        name=f"invoice-{number}.pdf",
        kind="invoice",
        source="the store",
    )
    yield File(
        build_lines(order),
        name=f"order-{number}.csv",
        kind="order lines",
        source="the store",
    )


def build_photo() -> bytes:
    """A speaker with one of its two feet missing, as a PNG."""
    rows = (
        b"\0" + bytes(value for x in range(WIDTH) for value in _find_color(x, y))
        for y in range(HEIGHT)
    )
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    parts = (
        (b"IHDR", head),
        (b"IDAT", zlib.compress(b"".join(rows), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_build_chunk(*part) for part in parts)


def _find_color(x: int, y: int) -> Color:
    if 80 <= x < 240 and 50 <= y < 190:
        near = (x - 160) ** 2 + (y - 120) ** 2 < 50**2
        return GRILLE if near and x % 8 < 4 else CASE
    if 100 <= x < 125 and 190 <= y < 204:
        return FOOT
    return BACKGROUND


def _build_chunk(name: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(name + data))
    return struct.pack(">I", len(data)) + name + data + check


def build_invoice(order: Mapping[str, Any]) -> bytes:
    """One page of a PDF."""
    lines = [
        "Northgate Electronics",
        f"Invoice for order {order['order_id']}",
        *(_format_line(line) for line in order.get("items", ())),
        f"Total: {order['total']} {order['currency']}",
    ]
    shown = "".join(f"({_escape(line)}) Tj 0 -22 Td " for line in lines)
    drawn = f"BT /F1 12 Tf 30 240 Td {shown}ET".encode("ascii", "replace")
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 420 300]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(drawn), drawn),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n"
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % start
    return bytes(out)


def _format_line(line: Mapping[str, Any]) -> str:
    return ", ".join(str(value) for value in line.values())


def _escape(text: str) -> str:
    return text.translate({ord(sign): f"\\{sign}" for sign in "()\\"})


def build_lines(order: Mapping[str, Any]) -> bytes:
    """The lines of the order as CSV."""
    lines = list(order.get("items", ()))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]) if lines else ["order_id"])
    writer.writeheader()
    writer.writerows(lines or [{"order_id": order["order_id"]}])
    return out.getvalue().encode()
