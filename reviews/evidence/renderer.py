"""Draws a hostile file again, as plain pictures or as the cells of a table: the program
of a child process, with nothing of the product in it.

It reads a file from its standard input, and writes one line of JSON and then the bytes
of the pictures. `python -m reviews.evidence.renderer image/png` is how
`rendering.render_file` starts it. A crash, a signal or silence means that the file
cannot be shown.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pypdfium2
from PIL import Image, ImageOps

from .confinement import NotConfined, confine_process
from .formats import CSV, FORMATS, JSON, MOST_PAGES, PDF

MOST_PIXELS = 40_000_000  # of a picture as it was sent
LONGEST_SIDE = 1600  # pixels of a picture as it is shown
PDF_SCALE = 2.0  # 144 dots an inch
QUALITY = 85
MOST_ROWS, MOST_COLUMNS, MOST_CHARACTERS = 50, 12, 200  # the last of a cell
DEEPEST = 32  # levels of JSON
MOST_TEXT = 20_000  # characters of a PDF's text
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
Drawing = tuple[dict[str, Any], bytes]


class Unshowable(Exception):
    """The file cannot be shown; the text is for the agent, and quotes nothing of it."""


def render(media_type: str, body: bytes) -> Drawing:
    """What to show of a file, as JSON, and the bytes of its pictures one after the
    other. Raises Unshowable."""
    try:
        if media_type == CSV:
            return _read_csv(body), b""
        if media_type == JSON:
            return _read_json(body), b""
        if media_type == PDF:
            return _draw_pages(body)
        return _draw_frames(body, FORMATS[media_type])
    except Unshowable:
        raise
    except (Image.DecompressionBombError, MemoryError):
        raise Unshowable("it has too many pixels") from None
    except RecursionError:
        raise Unshowable(f"it is nested deeper than {DEEPEST} levels") from None
    except Exception as error:  # the parsers raise almost anything
        raise Unshowable("it is damaged or cut off") from error


def _draw_frames(body: bytes, name: str) -> Drawing:
    image = Image.open(io.BytesIO(body), formats=[name])
    if image.width * image.height > MOST_PIXELS:
        raise Unshowable(f"it has more than {MOST_PIXELS // 1_000_000} million pixels")
    count = int(getattr(image, "n_frames", 1))

    def draw() -> Iterator[Image.Image]:
        for number in range(min(count, MOST_PAGES)):
            image.seek(number)
            mode = "RGBA" if image.has_transparency_data else "RGB"
            yield ImageOps.exif_transpose(image.convert(mode))

    return _encode_pictures(draw(), count=count, unit="frame")


def _draw_pages(body: bytes) -> Drawing:
    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        # The library has no other sign of a document that needs a password.
        if "password" in str(error).lower():
            raise Unshowable("it is protected with a password") from None
        raise
    count, texts = len(document), []
    if count < 1:
        raise Unshowable("it has no pages")

    def draw() -> Iterator[Image.Image]:
        for number in range(min(count, MOST_PAGES)):
            page = document[number]
            longest = max(*page.get_size(), 1.0)
            scale = min(PDF_SCALE, LONGEST_SIDE / longest)
            texts.append(page.get_textpage().get_text_bounded())
            yield page.render(scale=scale, may_draw_forms=False).to_pil()

    head, pictures = _encode_pictures(draw(), count=count, unit="page")
    text = _UNSTORABLE.sub(" ", "\n".join(texts)[:MOST_TEXT])
    return {**head, "text": text}, pictures


def _encode_pictures(drawn: Iterable[Image.Image], *, count: int, unit: str) -> Drawing:
    """New pictures of the same pixels, without a byte of the old ones."""
    sizes, bodies = [], []
    for image in drawn:
        image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
        plain = Image.new("RGB", image.size, "white")
        plain.paste(image, mask=image if image.mode == "RGBA" else None)
        out = io.BytesIO()
        plain.save(out, "WEBP", quality=QUALITY)
        bodies.append(out.getvalue())
        size = {"width": plain.width, "height": plain.height}
        sizes.append({**size, "size": len(bodies[-1])})
    return {"pictures": sizes, "count": count, "unit": unit}, b"".join(bodies)


def _read_csv(body: bytes) -> dict[str, Any]:
    text = body.decode("utf-8-sig")
    csv.field_size_limit(len(text) + 1)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:4096], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    rows = csv.reader(io.StringIO(text, newline=""), dialect)
    head = next(rows, [])
    shown = list(islice(rows, MOST_ROWS))
    more = [len(row) for row in rows]
    width = max([len(head), *map(len, shown), *more])
    if not width:
        raise Unshowable("it has no cells")
    return _build_table(head, shown, rows=len(shown) + len(more), columns=width)


class _Members(tuple[tuple[str, Any], ...]):
    """An object's members in their order, a repeated name as often as it is there."""


def _read_json(body: bytes) -> dict[str, Any]:
    value = json.loads(body.decode("utf-8-sig"), object_pairs_hook=_Members)
    leaves = _list_leaves(value, (), 0)
    rows = [[".".join(path), text] for path, text in islice(leaves, MOST_ROWS)]
    count = len(rows) + sum(1 for _ in leaves)
    return _build_table(["Name", "Value"], rows, rows=count, columns=2)


def _list_leaves(
    value: Any, path: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The values with their paths, in the file's order."""
    if depth > DEEPEST:
        raise Unshowable(f"it is nested deeper than {DEEPEST} levels")
    if isinstance(value, _Members) and value:
        for key, member in value:
            yield from _list_leaves(member, (*path, key), depth + 1)
    elif isinstance(value, list) and value:
        for number, member in enumerate(value, 1):
            yield from _list_leaves(member, (*path, str(number)), depth + 1)
    else:
        yield path, _format_leaf(value)


def _format_leaf(value: Any) -> str:
    if isinstance(value, _Members):
        return "{}"
    return value if isinstance(value, str) else json.dumps(value)


def _build_table(
    head: list[str], body: list[list[str]], *, rows: int, columns: int
) -> dict[str, Any]:
    """The cells that are shown, all of one width, and how many there are."""
    width = min(columns, MOST_COLUMNS)

    def cut(row: list[str]) -> list[str]:
        cells = [_cut_cell(cell) for cell in row[:width]]
        return cells + [""] * (width - len(cells))

    shown = [cut(row) for row in body]
    longest = max((len(cell) for row in (head, *body) for cell in row), default=0)
    return {
        "table": {"columns": cut(head), "rows": shown},
        "rows": rows,
        "columns": columns,
        "cut": longest > MOST_CHARACTERS,
    }


def _cut_cell(text: str) -> str:
    """The cell's beginning, without characters that no database stores."""
    if len(text) > MOST_CHARACTERS:
        text = text[: MOST_CHARACTERS - 1] + "…"
    return _UNSTORABLE.sub("\ufffd", text)


_SMALL_PDF = b"""%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R
/Resources<</Font<</F 5 0 R>>>>>> endobj
4 0 obj <</Length 21>> stream
BT /F 9 Tf (a) Tj ET
endstream endobj
5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj
trailer <</Root 1 0 R>>
"""


def _rehearse() -> None:
    """Draw small files of our own: what the libraries load late is loaded then."""
    turned = Image.Exif()
    turned[0x0112] = 6
    frames = [Image.new("RGB", (2, 2), color) for color in ("red", "blue")]
    for media_type, name in FORMATS.items():
        out = io.BytesIO()
        more = {} if name == "JPEG" else {"save_all": True, "append_images": frames[1:]}
        frames[0].save(out, name, exif=turned, **more)
        render(media_type, out.getvalue())
    render(PDF, _SMALL_PDF)
    render(CSV, b"a,b\n1,2\n")
    render(JSON, b"{}")


def main(media_type: str) -> None:
    """Draw the file on the standard input."""
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    _rehearse()
    try:
        confine_process()
        head, pictures = render(media_type, sys.stdin.buffer.read())
    except Unshowable as problem:
        head, pictures = {"problem": str(problem)}, b""
    except NotConfined:
        problem_text = "this system cannot confine the program that would draw it"
        head, pictures = {"problem": problem_text}, b""
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + pictures)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
