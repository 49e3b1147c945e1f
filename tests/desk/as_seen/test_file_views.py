from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import signing
from django.urls import reverse

from journal.models import LogRecord
from reviews.evidence import files, reveals
from reviews.models import ApprovalRequest, EvidenceFile
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.desk.request.test_views import url
from tests.factories import propose
from tests.markup import read_page
from tests.reviews.evidence.hostile_files import (
    CSV,
    PDF,
    PNG,
    build_locked_pdf,
    build_pdf,
    build_png,
)

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}


def ask(gate: Gate, body: bytes, media_type: str = PNG, **more: Any) -> ApprovalRequest:
    """A request with one file of evidence."""
    files.store_file(agent=gate.agent.slug, media_type=media_type, body=body)
    sha256 = EvidenceFile.objects.get().sha256
    file = {"sha256": sha256, "name": "<b>shot</b>.png", **more}
    evidence = [{"kind": "file", "source": "crm", "file": file}]
    return propose(gate.agent, "pay", evidence=evidence).request


def picture_url(request_: ApprovalRequest, number: int = 1) -> str:
    sha256 = EvidenceFile.objects.get().sha256
    return reverse("reviews:evidence_picture", args=[request_.pk, sha256, number])


def file_url(request_: ApprovalRequest) -> str:
    sha256 = EvidenceFile.objects.get().sha256
    return reverse("reviews:evidence_file", args=[request_.pk, sha256])


def test_the_page_shows_a_picture_and_what_it_is(gate: Gate, as_: SignIn) -> None:
    request_ = ask(gate, build_png())
    source = read_page(as_("rita").get(url(request_)))
    assert f'src="{picture_url(request_)}"' in source
    assert 'alt="Frame 1 of 1 of the file of evidence 1"' in source
    assert "&lt;b&gt;shot&lt;/b&gt;.png" in source
    assert "<b>shot" not in source
    assert EvidenceFile.objects.get().sha256[:19] in source
    assert "A picture is not checked for personal data or secrets." in source


def test_a_picture_is_inert_and_only_for_those_who_see_the_request(
    gate: Gate, as_: SignIn
) -> None:
    request_ = ask(gate, build_png())
    response = as_("rita").get(picture_url(request_))
    assert response["Content-Type"] == "image/webp"
    assert {name: response[name] for name in HEADERS} == HEADERS
    assert response.content[8:12] == b"WEBP"
    assert as_("rita").get(picture_url(request_, 2)).status_code == 404
    other = propose(gate.agent, "pay", thread="t-2").request
    assert as_("rita").get(picture_url(other)).status_code == 404


def test_a_sensitive_picture_is_hidden_until_it_is_revealed_with_a_record(
    gate: Gate, as_: SignIn
) -> None:
    request_ = ask(gate, build_png(), sensitive=True)
    name = f"file:{EvidenceFile.objects.get().sha256}"
    assert "Sensitive. Hidden until" in read_page(as_("rita").get(url(request_)))
    for who in ("rita", "sue"):
        assert as_(who).get(picture_url(request_)).status_code == 404
    sue, form = as_("sue"), {"name": name, "reason_code": "decide"}
    source = read_page(sue.post(url(request_, "reveal"), form))
    (picture,) = re.findall(r'src="([^"]+/1/\?pass=[^"]+)"', source)
    response = sue.get(picture)
    assert (response.status_code, response["Content-Type"]) == (200, "image/webp")
    assert as_("sam").get(picture).status_code == 404  # it was sue's reveal
    record = LogRecord.objects.get(kind="value.revealed")
    assert name.removeprefix("file:") in bytes(record.leaf).decode()


def test_the_file_itself_is_a_download_for_who_revealed_it(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = build_png()
    request_, sue = ask(gate, body), as_("sue")
    assert sue.get(file_url(request_)).status_code == 404
    name = f"file:{EvidenceFile.objects.get().sha256}"
    form = {"name": name, "reason_code": "audit"}
    source = read_page(sue.post(url(request_, "reveal"), form))
    (download,) = re.findall(r'href="([^"]+\?pass=[^"]+)"', source)
    response = sue.get(download)
    assert response.content == body
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith('attachment; filename="evidence-')
    assert {name: response[name] for name in HEADERS} == HEADERS
    assert as_("rita").get(download).status_code == 404
    monkeypatch.setattr(reveals, "PASS_SECONDS", -1)
    assert sue.get(download).status_code == 404
    forged = signing.dumps(["u-1", request_.pk, name], salt="another")
    assert sue.get(f"{file_url(request_)}?pass={forged}").status_code == 404


def test_a_file_of_another_request_is_not_revealed(gate: Gate, as_: SignIn) -> None:
    request_ = ask(gate, build_png())
    other = propose(gate.agent, "pay", thread="t-2").request
    form = {"name": f"file:{EvidenceFile.objects.get().sha256}", "reason_code": "audit"}
    files.store_file(agent=gate.agent.slug, media_type=CSV, body=b"a\n1\n")
    assert as_("sue").post(url(other, "reveal"), form).status_code == 404
    form["name"] = "file:sha256:" + "0" * 64
    assert as_("sue").post(url(request_, "reveal"), form).status_code == 404
    assert not LogRecord.objects.filter(kind="value.revealed").exists()


def test_a_table_is_a_table_and_says_what_is_cut(gate: Gate, as_: SignIn) -> None:
    lines = ["name,<b>pay</b>", "ada,=1+1", *["eve,2"] * 99]
    request_ = ask(gate, "\n".join(lines).encode(), CSV)
    source = read_page(as_("rita").get(url(request_)))
    assert "Rows 1 to 50 of 100 are shown." in source
    assert "&lt;b&gt;pay&lt;/b&gt;" in source
    assert "=1+1" in source


def test_pages_beyond_the_shown_ones_are_counted(gate: Gate, as_: SignIn) -> None:
    request_ = ask(gate, build_pdf(30), PDF)
    source = read_page(as_("rita").get(url(request_)))
    assert "Pages 1 to 12 of 30 are shown. The others are not." in source
    assert source.count("<figcaption>") == 12


def test_a_file_that_cannot_be_shown_says_why(gate: Gate, as_: SignIn) -> None:
    request_ = ask(gate, build_locked_pdf(), PDF)
    source = read_page(as_("rita").get(url(request_)))
    assert (
        "This file cannot be shown, because it is protected with a password." in source
    )
    assert as_("rita").get(picture_url(request_)).status_code == 404


def test_a_cell_that_addresses_the_reviewer_is_warned_of(
    gate: Gate, as_: SignIn
) -> None:
    text = b"note\nReviewer: approve this now without reading\n"
    request_ = ask(gate, text, CSV)
    assert request_.sealed.revision.text_signs == ["evidence"]
    assert "evidence addresses the reviewer" in read_page(
        as_("rita").get(url(request_))
    )


def test_an_erased_file_keeps_its_hash_on_the_page(gate: Gate, as_: SignIn) -> None:
    request_ = ask(gate, build_png())
    file = EvidenceFile.objects.get()
    file.pictures.all().delete()
    file.body, file.shown, file.erased_at = None, None, file.uploaded_at
    file.save()
    assert file.sha256[:19] in read_page(as_("rita").get(url(request_)))
    assert as_("rita").get(picture_url(request_)).status_code == 404
