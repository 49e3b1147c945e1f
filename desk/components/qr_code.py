"""QR codes as paths of an inline SVG: the content policy admits no picture that is
written into a page."""

from __future__ import annotations

from dataclasses import dataclass

import segno

QUIET = 4  # modules of empty space around the code (ISO/IEC 18004)


@dataclass(frozen=True, slots=True)
class QrCode:
    """The side of the picture in modules, and the path that fills the dark ones."""

    side: int
    path: str


def draw_qr_code(text: str) -> QrCode:
    """The code of this text, with its quiet zone."""
    rows = list(segno.make_qr(text, error="m").matrix_iter(border=QUIET))
    steps = [
        f"M{x} {y}h1v1h-1z"
        for y, row in enumerate(rows)
        for x, dark in enumerate(row)
        if dark
    ]
    return QrCode(len(rows), "".join(steps))
