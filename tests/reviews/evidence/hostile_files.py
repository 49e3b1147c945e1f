"""Files as agents send them: harmless ones, and those that attack who draws them. Made
here from bytes, so that nothing hostile lies in the repository."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

import pypdfium2
from PIL import Image, PngImagePlugin

PNG, JPEG, GIF, WEBP = "image/png", "image/jpeg", "image/gif", "image/webp"
PDF, CSV, JSON = "application/pdf", "text/csv", "application/json"
SECRET = b"where-it-was-taken"


def build_png(width: int = 60, height: int = 40, color: str = "red") -> bytes:
    out = io.BytesIO()
    about = PngImagePlugin.PngInfo()
    about.add_text("Comment", SECRET.decode())
    Image.new("RGB", (width, height), color).save(out, "PNG", pnginfo=about)
    return out.getvalue()


def build_gif(frames: int) -> bytes:
    out = io.BytesIO()
    first, *rest = (
        Image.new("RGB", (20, 20), (number % 256, 0, 0)) for number in range(frames)
    )
    first.save(out, "GIF", save_all=True, append_images=rest)
    return out.getvalue()


def build_picture(name: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (30, 20), "blue").save(out, name)
    return out.getvalue()


def build_pdf(pages: int = 1, text: str = "") -> bytes:
    """With text, one page of it, written by hand: the library writes none."""
    if text:
        return _build_text_pdf(text)
    out = io.BytesIO()
    document = pypdfium2.PdfDocument.new()
    for _ in range(pages):
        document.new_page(100, 150)
    document.save(out)
    return out.getvalue()


def _build_text_pdf(text: str) -> bytes:
    drawn = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    return _join_pdf(
        b"<</Type/Catalog/Pages 2 0 R/OpenAction 6 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 150]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(drawn), drawn),
        font,
        b"<</S/JavaScript/JS(app.alert\\(1\\))>>",
    )


def _join_pdf(*objects: bytes, trailer: bytes = b"") -> bytes:
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for place in places:
        out += b"%010d 00000 n \n" % place
    size = len(objects) + 1
    out += b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF" % (
        size,
        trailer,
        start,
    )
    return bytes(out)


def build_locked_pdf() -> bytes:
    """A PDF whose standard encryption takes a password that nobody here has."""
    key = b"<" + b"41" * 32 + b">"
    lock = b"<</Filter/Standard/V 1/R 2/P -4/O %s/U %s>>" % (key, key)
    return _join_pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]>>",
        lock,
        trailer=b"/Encrypt 4 0 R/ID[<%s><%s>]" % (b"41" * 16, b"41" * 16),
    )


def build_bomb(side: int) -> bytes:
    """A PNG of a few kilobytes that claims `side` times `side` pixels. It has 50 MB of
    them."""
    data = zlib.compress(bytes(50 * 1024 * 1024), 9)
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_build_chunk(*part) for part in parts)


def _build_chunk(name: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(name + data))
    return struct.pack(">I", len(data)) + name + data + check


# Name -> (type, bytes, how the reason begins that people read).
Attack = tuple[str, Callable[[], bytes], str]
ATTACKS: dict[str, Attack] = {
    "a bomb of pixels": (PNG, lambda: build_bomb(20_000), "it has "),
    "a claim of pixels": (PNG, lambda: build_bomb(2**30), "it has "),
    "a broken picture": (PNG, lambda: build_png()[:80], "it is damaged"),
    "half a JPEG": (JPEG, lambda: build_picture("JPEG")[:200], "it is damaged"),
    "a GIF of noise": (GIF, lambda: b"GIF89a" + b"\xff" * 500, "it is damaged"),
    "noise after RIFF": (WEBP, lambda: b"RIFF" + b"\xff" * 500, "it is damaged"),
    "a broken PDF": (PDF, lambda: b"%PDF-1.7\n" + b"\xff" * 900, "it is damaged"),
    "a locked PDF": (PDF, build_locked_pdf, "it is protected with a password"),
    "deep JSON": (JSON, lambda: b"[" * 200_000, "it is nested deeper than 32"),
    "JSON of 40 levels": (JSON, lambda: b"[" * 40 + b"]" * 40, "it is nested deeper"),
    "half a JSON": (JSON, lambda: b'{"a": [1,', "it is damaged"),
    "a CSV of nothing": (CSV, lambda: b"\n\n", "it has no cells"),
}
