from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from agents import keys
from agents.keys import AgentScope
from journal import canonical
from journal.models import LogRecord
from reviews.evidence import files, rendering, retention
from reviews.models import ApprovalRequest, EvidenceFile, EvidencePicture, Revision
from reviews.requests import versions
from tests.agents.api.test_proposals import code
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import proposal_body
from tests.reviews.evidence.hostile_files import (
    ATTACKS,
    CSV,
    JSON,
    PDF,
    PNG,
    build_pdf,
    build_png,
)


def upload(caller: Caller, body: bytes, media_type: str = PNG) -> Any:
    headers = {"Authorization": f"Bearer {caller.key}"}
    return Client().post(
        "/api/v1/evidence", body, content_type=media_type, headers=headers
    )


def named(sha256: str, **more: Any) -> dict[str, Any]:
    return {"kind": "file", "file": {"sha256": sha256, "name": "a.png", **more}}


def send(caller: Caller, body: bytes, media_type: str = PNG, **more: Any) -> Any:
    """Upload a file, propose with it, and return the stored item of evidence."""
    sha256 = upload(caller, body, media_type).json()["sha256"]
    response = caller.propose(evidence=[named(sha256, **more)])
    assert response.status_code == 201, response.content
    (item,) = Revision.objects.get(proposal=response.json()["id"]).evidence
    return item


def first_error(response: Any) -> tuple[int, str, str]:
    (error,) = response.json()["errors"]
    return response.status_code, error["path"], error["message"]


def test_a_file_is_stored_once_and_encrypted(caller: Caller) -> None:
    body = build_png()
    first, again = upload(caller, body), upload(caller, body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert first.json()["pictures"] == 1
    file = EvidenceFile.objects.get()
    assert body[:30] not in bytes(file.body or b"")
    assert files.load_body(file) == body
    assert b"WEBP" not in bytes(EvidencePicture.objects.get().body)


@pytest.mark.parametrize("name", ["a claim of pixels", "a locked PDF", "half a JSON"])
def test_a_file_that_cannot_be_shown_is_stored_with_the_reason(
    name: str, caller: Caller
) -> None:
    media_type, build, reason = ATTACKS[name]
    response = upload(caller, build(), media_type)
    assert response.status_code == 201
    assert response.json()["problem"].startswith(reason)


@pytest.mark.parametrize(
    ("media_type", "body", "path", "says"),
    [
        ("image/svg+xml", b"<svg/>", "Content-Type", "must be one of image/png"),
        ("text/html", b"<p>", "Content-Type", "must be one of"),
        (PNG, b"GIF89a", "body", "is not image/png"),
        (PDF, b"<script>", "body", "is not application/pdf"),
        (CSV, b"\xff\xfe\0a", "body", "must be text in UTF-8"),
        (JSON, b"", "body", "must not be empty"),
    ],
)
def test_a_file_that_is_not_what_it_is_called_is_refused(
    media_type: str, body: bytes, path: str, says: str, caller: Caller
) -> None:
    status, where, message = first_error(upload(caller, body, media_type))
    assert (status, where) == (422, path)
    assert says in message
    assert not EvidenceFile.objects.exists()


def test_the_same_bytes_have_one_type(caller: Caller) -> None:
    upload(caller, b"[1]", JSON)
    status, where, message = first_error(upload(caller, b"[1]", CSV))
    assert (status, where) == (422, "Content-Type")
    assert "application/json" in message


def test_an_agent_with_many_unused_files_must_use_them_first(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_UNUSED", 1)
    send(caller, b"[1]", JSON)
    assert upload(caller, b"[2]", JSON).status_code == 201
    response = upload(caller, b"[3]", JSON)
    assert (response.status_code, code(response)) == (429, "too_many")
    assert response["Retry-After"] == "3600"


def test_a_gate_that_draws_too_much_says_when_to_try_again(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "WAIT_FOR_TURN", 0.01)
    with rendering._turns, rendering._turns:
        response = upload(caller, b"[1]", JSON)
    assert (response.status_code, code(response)) == (429, "too_many")
    assert response["Retry-After"] == "5"


def test_a_proposal_names_its_files_and_the_seal_and_the_log_have_them(
    caller: Caller, gate: Gate
) -> None:
    body = build_png()
    sha256 = upload(caller, body).json()["sha256"]
    caller.propose(evidence=[named(sha256)])
    request = ApprovalRequest.objects.get()
    (item,) = request.sealed.revision.evidence
    assert item["file"]["sha256"] == sha256
    assert (item["file"]["size"], item["file"]["media_type"]) == (len(body), PNG)
    record = LogRecord.objects.get(kind="proposal.submitted")
    assert sha256 in bytes(record.leaf).decode()
    content = versions._build_sealed_content(request.sealed)
    assert content["files"][0]["sha256"] == sha256
    assert request.sealed.seal == canonical.digest(canonical.encode(content))


@pytest.mark.parametrize("whose", ["nobody's", "another agent's"])
def test_an_agent_names_only_its_own_files(
    whose: str, caller: Caller, gate: Gate
) -> None:
    sha256 = "sha256:" + "0" * 64
    if whose == "another agent's":
        body = b"[1]"
        files.store_file(agent="somebody-else", media_type=JSON, body=body)
        sha256 = EvidenceFile.objects.get().sha256
    response = caller.propose(evidence=[named(sha256)])
    status, where, message = first_error(response)
    assert (status, where) == (422, "evidence.0.file.sha256")
    assert "POST /api/v1/evidence first" in message
    assert not ApprovalRequest.objects.exists()


def test_an_item_needs_a_text_or_a_file_and_files_have_a_limit(caller: Caller) -> None:
    body = proposal_body("pay").model_dump(mode="json", exclude_unset=True)
    key = {"Idempotency-Key": "k"}

    def propose(*evidence: dict[str, Any]) -> Any:
        return caller.post("/proposals", {**body, "evidence": evidence}, **key)

    status, where, message = first_error(propose({"kind": "x"}))
    assert (status, where, message) == (422, "evidence.0", "needs a text or a file")
    many = [named("sha256:" + "0" * 64)] * 9
    status, where, message = first_error(propose(*many))
    assert (status, where, message) == (
        422,
        "evidence",
        "at most 8 files: 9 were given",
    )


def test_cells_are_redacted_before_they_are_stored(caller: Caller) -> None:
    rows = b"customer,password\nada@example.com,sesame\n"
    item = send(caller, rows, CSV, name="of ada@example.com.csv")
    ((mail, password),) = item["table"]["rows"]
    assert mail.startswith("[e-mail · redacted · #")
    assert password.startswith("[secret · redacted · #")
    assert item["file"]["name"].startswith("of [e-mail · redacted · #")
    assert item["file"]["sha256"] == EvidenceFile.objects.get().sha256


def test_a_json_value_below_a_telling_name_is_redacted(caller: Caller) -> None:
    item = send(caller, b'{"card": {"password": ["x", 12]}, "note": "ok"}', JSON)
    values = [value for _, value in item["table"]["rows"]]
    assert values[2] == "ok"
    assert all(value.startswith("[secret") for value in values[:2])


def test_a_sensitive_table_is_not_in_the_revision(caller: Caller) -> None:
    item = send(caller, b"a,b\n1,2\n", CSV, sensitive=True)
    assert "table" not in item
    assert item["file"]["sensitive"] is True


@pytest.mark.parametrize(
    ("text", "hides"),
    [("Paid with 4111 1111 1111 1111", True), ("Write to ada@example.com", False)],
)
def test_a_pdf_whose_text_has_secrets_is_sensitive_whatever_the_agent_says(
    text: str, hides: bool, caller: Caller
) -> None:
    item = send(caller, build_pdf(text=text), PDF)
    assert item["file"]["sensitive"] is hides
    assert item["file"]["finds"] == ("card" if hides else "e-mail")


def test_files_that_no_proposal_names_are_deleted_after_a_day(caller: Caller) -> None:
    send(caller, build_png())
    upload(caller, build_png(color="blue"))
    assert retention.delete_unused_files() == 0
    past = timedelta(days=2)
    EvidenceFile.objects.update(uploaded_at=F("uploaded_at") - past)
    assert retention.delete_unused_files() == 1
    assert EvidenceFile.objects.get().used_at is not None
    assert EvidencePicture.objects.count() == 1


def test_old_files_are_erased_and_their_hashes_stay(caller: Caller) -> None:
    item = send(caller, build_png())
    file = EvidenceFile.objects.get()
    assert retention.erase_files() == 0
    EvidenceFile.objects.update(used_at=F("used_at") - timedelta(days=184))
    assert retention.erase_files() == 1
    file.refresh_from_db()
    assert (file.body, file.shown) == (None, None)
    assert not EvidencePicture.objects.exists()
    record = LogRecord.objects.get(kind="evidence.erased")
    assert item["file"]["sha256"] in bytes(record.leaf).decode()
    # The same bytes may come again.
    assert upload(caller, build_png()).status_code == 201
    assert files.load_body(EvidenceFile.objects.get()) == build_png()


def test_a_key_that_only_reads_sends_no_file(gate: Gate) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen, scopes=(AgentScope.READ,))
    assert upload(Caller(key, None), b"[1]", JSON).status_code == 403
