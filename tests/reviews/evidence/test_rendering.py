from __future__ import annotations

import io
import json
import subprocess
import sys
import time

import pytest
from django.conf import settings
from PIL import Image

from reviews.evidence import rendering
from reviews.evidence.rendering import Drawing, render_file

from .hostile_files import (
    ATTACKS,
    CSV,
    GIF,
    JSON,
    PDF,
    PNG,
    SECRET,
    build_gif,
    build_pdf,
    build_picture,
    build_png,
)


@pytest.mark.parametrize("name", ATTACKS)
def test_what_cannot_be_drawn_says_why(name: str) -> None:
    media_type, build, reason = ATTACKS[name]
    drawn = render_file(media_type, build())
    assert drawn.problem.startswith(reason)
    assert (drawn.head, drawn.pictures) == ({}, [])


@pytest.mark.parametrize("name", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_picture_is_drawn_again_as_webp(name: str) -> None:
    drawn = render_file(f"image/{name.lower()}", build_picture(name))
    (picture,) = drawn.pictures
    with Image.open(io.BytesIO(picture)) as image:
        assert (image.format, image.size) == ("WEBP", (30, 20))


def test_nothing_but_the_pixels_is_left_of_a_picture() -> None:
    body = build_png() + b"<script>alert(1)</script>"
    assert SECRET in body
    (picture,) = render_file(PNG, body).pictures
    assert SECRET not in picture
    assert b"script" not in picture
    with Image.open(io.BytesIO(picture)) as image:
        assert not image.getexif()
        assert "Comment" not in image.info


def test_a_huge_picture_becomes_a_small_one() -> None:
    (picture,) = render_file(PNG, build_png(5000, 20)).pictures
    with Image.open(io.BytesIO(picture)) as image:
        assert image.width == 1600


def test_the_first_frames_of_an_animation_are_drawn_and_all_are_counted() -> None:
    drawn = render_file(GIF, build_gif(40))
    assert (len(drawn.pictures), drawn.head["count"]) == (12, 40)
    assert drawn.head["unit"] == "frame"


def test_the_first_pages_of_ten_thousand_are_drawn_and_all_are_counted() -> None:
    drawn = render_file(PDF, build_pdf(10_000))
    assert (len(drawn.pictures), drawn.head["count"]) == (12, 10_000)


def test_the_text_of_a_pdf_is_read_and_its_script_is_not_run() -> None:
    drawn = render_file(PDF, build_pdf(text="Paid with 4111 1111 1111 1111"))
    assert "4111 1111 1111 1111" in drawn.head["text"]
    assert len(drawn.pictures) == 1


def test_a_table_is_cut_to_its_first_rows_columns_and_characters() -> None:
    lines = [",".join(f"c{n}" for n in range(30))]
    lines += [",".join("x" * 300 for _ in range(30)) for _ in range(400)]
    head = render_file(CSV, "\n".join(lines).encode()).head
    assert (head["rows"], head["columns"], head["cut"]) == (400, 30, True)
    assert len(head["table"]["rows"]) == 50
    assert {len(row) for row in head["table"]["rows"]} == {12}
    assert head["table"]["rows"][0][0] == "x" * 199 + "…"


def test_a_formula_is_a_text_like_any_other() -> None:
    head = render_file(CSV, b"name;pay\nada;=cmd|' /C calc'!A0\n").head
    assert head["table"]["rows"] == [["ada", "=cmd|' /C calc'!A0"]]


def test_json_is_listed_with_every_member_of_a_repeated_name() -> None:
    head = render_file(JSON, b'{"a": {"b": [1, null]}, "to": "ada", "to": "eve"}').head
    assert head["table"]["rows"] == [
        ["a.b.1", "1"],
        ["a.b.2", "null"],
        ["to", "ada"],
        ["to", "eve"],
    ]


def test_what_no_database_stores_is_replaced() -> None:
    head = render_file(JSON, rb'{"a": "x\u0000y\ud800z"}').head
    assert head["table"]["rows"] == [["a", "x�y�z"]]


def test_the_child_is_ended_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "TIME_LIMIT", 0.01)
    started = time.monotonic()
    drawn = render_file(PNG, build_png())
    assert drawn == Drawing({}, problem=rendering.CANNOT_BE_SHOWN)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b"no json\n",
        b'{"pictures": [{"width": 1, "height": 1, "size": 9}]}\n<svg></svg>',
        b'{"pictures": [{"width": 1, "height": 1, "size": 900}]}\nRIFF0000WEBP',
        b'{"table": {"columns": [1], "rows": []}}\n',
        b'{"unit": "<b>page</b>"}\n',
    ],
)
def test_what_no_honest_child_writes_is_not_shown(
    output: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "_run_renderer", lambda *given: output)
    assert render_file(PNG, build_png()).problem == rendering.CANNOT_BE_SHOWN


CONFINED = """
import json, os, socket, subprocess, sys
from reviews.evidence.confinement import confine_process
confine_process()
refused = []
for name, attempt in {
    "open": lambda: open("/etc/passwd"),
    "connect": lambda: socket.socket(),
    "fork": lambda: os.fork(),
    "run": lambda: os.execv("/bin/true", ["true"]),
    "kill": lambda: os.kill(os.getppid(), 0),
    "memory": lambda: bytearray(2 << 30),
}.items():
    try:
        attempt()
    except (OSError, MemoryError):
        refused.append(name)
os.write(1, json.dumps(refused).encode())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
def test_a_confined_process_can_only_compute() -> None:
    run = subprocess.run(
        [sys.executable, "-c", CONFINED],
        env={"PYTHONPATH": str(settings.BASE_DIR)},
        capture_output=True,
        check=True,
    )
    assert json.loads(run.stdout) == [
        "open",
        "connect",
        "fork",
        "run",
        "kill",
        "memory",
    ]
