"""The form of a new version: files, numbers of lines, and checks that save nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from policies.documents.source import write_source
from policies.models import PolicyVersion
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.markup import read_page

CHECK = "/policies/new/check/"


def text_of(gate: Gate, old: str = "", new: str = "") -> str:
    text = write_source(gate.policy.document)
    assert old in text
    return text.replace(old, new)


def file_of(content: bytes) -> Any:
    return SimpleUploadedFile("policy.yaml", content)


def test_a_check_names_lines_and_what_is_laxer_and_saves_nothing(
    gate: Gate, as_: SignIn
) -> None:
    adam = as_("adam", **HTMX)
    wrong = text_of(gate, "args.amount > 50000", "args.amuont > 50000")
    line = wrong[: wrong.index("args.amuont")].count("\n") + 1
    part = read_page(adam.post(CHECK, {"document": wrong}))
    assert "<html" not in part
    assert f'href="#line-{line}" data-line="{line}"' in part
    laxer = text_of(gate, "args.amount > 50000", "args.amount > 90000")
    part = read_page(adam.post(CHECK, {"document": laxer.replace("\n", "\r\n")}))
    assert "No errors. Compared with version" in part
    assert "Rule pay.over_500 (pay, pay_queryable, pay_opaque) asks for less" in part
    part = read_page(adam.post(CHECK, {"document": text_of(gate)}))
    assert "asks for the same as the active version" in part
    assert not PolicyVersion.objects.filter(status="draft").exists()


def test_without_a_script_a_check_answers_with_the_page(
    gate: Gate, as_: SignIn
) -> None:
    text = "name: [\n<b>&"
    answer = as_("adam").post(f"{CHECK}?from=1", {"document": text})
    page = answer.content.decode()
    assert "name: [\n&lt;b&gt;&amp;</textarea>" in page
    assert '<u id="line-2">' in page
    assert "1 error in this text." in page
    assert as_("rita").post(CHECK, {"document": text}).status_code == 403


def test_a_file_takes_the_place_of_the_text_and_is_read_before_it_is_saved(
    gate: Gate, as_: SignIn
) -> None:
    adam, text = as_("adam"), text_of(gate)
    sent = {"document": "typed", "file": file_of(b"\xef\xbb\xbf" + text.encode())}
    saved = adam.post("/policies/new/", sent)
    assert saved.status_code == 422
    page = read_page(saved)
    assert "Nothing was saved yet: the text of the file is below." in page
    assert "Payments over 500.00" in page
    assert "asks for the same" in page
    assert not PolicyVersion.objects.filter(status="draft").exists()
    assert adam.post("/policies/new/", {"document": text}).status_code == 302


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (b"a\0b", "Choose a YAML file."),
        (b"a" * (2**21 + 1), "at most 524,288 characters"),
    ],
)
@pytest.mark.parametrize("path", [CHECK, "/policies/new/"])
def test_a_file_that_is_no_text_leaves_what_was_typed(
    gate: Gate, as_: SignIn, content: bytes, says: str, path: str
) -> None:
    sent = {"document": "typed: text", "file": file_of(content)}
    answer = as_("adam").post(path, sent)
    assert answer.status_code == 422
    page = read_page(answer)
    assert says in page[: page.index('id="file-hint"')]
    assert "typed: text</textarea>" in page
