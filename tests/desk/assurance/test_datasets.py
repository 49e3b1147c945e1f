"""The page of datasets: who may ask, answer and download, and what stays typed."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from assurance.datasets import consent, files
from journal import clock
from journal.models import LogRecord
from policies.models import Person
from reviews.models import Dataset
from tests import worlds
from tests.assurance.datasets.asking import PURPOSE, ask, write
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.markup import read_shown, read_text
from tests.security.world import BACKEND

pytestmark = pytest.mark.django_db
PAGE = "/assurance/datasets/"


def browse(person: Person) -> Client:
    client = Client()
    client.force_login(person, BACKEND)
    return client


def fields(gate: Gate, **typed: Any) -> dict[str, Any]:
    today = clock.now().date().isoformat()
    return {
        "purpose": PURPOSE,
        "owner": gate.otto.public_id,
        "tools": ["pay"],
        "since": today,
        "until": today,
        "train": "70",
        "validation": "15",
        "test": "15",
        **typed,
    }


def decided(gate: Gate) -> None:
    decide(propose(gate.agent).request, gate.rita)


def test_two_administrators_and_an_owner(gate: Gate) -> None:
    decided(gate)
    adam, alma, otto, sue = map(browse, (gate.adam, gate.alma, gate.otto, gate.sue))
    for client in (otto, sue):
        assert client.get(PAGE).status_code == 403
        assert client.post(PAGE, fields(gate)).status_code == 403
        assert "Datasets" not in read_text(client.get("/assurance/"))
    assert f'href="{PAGE}"' in adam.get("/assurance/").content.decode()
    assert adam.post(PAGE, fields(gate)).status_code == 302
    dataset = Dataset.objects.get()
    answer = reverse("reviews:dataset_answer", args=[dataset.pk])
    assert "You requested it." in read_text(adam.get(PAGE), "why-not")
    assert otto.get(PAGE).status_code == 200
    for client in (adam, otto, sue):
        assert client.post(answer, {"answer": "consent"}).status_code == 403
    dataset.refresh_from_db()
    assert (dataset.status, dataset.key) == ("asked", None)
    assert alma.post(answer, {"answer": "consent"}).status_code == 302
    assert alma.post(answer, {"answer": "refuse", "reason": "x"}).status_code == 409
    files.write_dataset(dataset.pk)
    file = reverse("reviews:dataset_file", args=[dataset.pk])
    for client in (adam, alma, otto):
        assert f'href="{file}"' in client.get(PAGE).content.decode()
        response: Any = client.get(file)
        body = b"".join(response.streaming_content)
        assert gzip.decompress(body).count(b"\n") == 2
        assert response["Content-Disposition"].startswith("attachment")
    assert sue.get(file).status_code == 404
    assert LogRecord.objects.filter(kind="dataset.downloaded").count() == 3
    gate.adam.groups.clear()
    assert adam.get(file).status_code == 404


def test_other_terms_than_were_read_are_not_consented_to(gate: Gate) -> None:
    decided(gate)
    dataset, alma = ask(gate), browse(gate.alma)
    answer = reverse("reviews:dataset_answer", args=[dataset.pk])
    sent = {"answer": "consent", "reason": "kept", "shown": read_shown(alma.get(PAGE))}
    worlds.rewrite(Dataset, dataset.pk, owner=gate.sue, tools=["pay", "mail"])
    refused = alma.post(answer, sent)
    assert refused.status_code == 409
    said = "its owner and its tools changed. Nothing was written."
    assert said in read_text(refused, "problem")
    assert "kept</textarea>" in refused.content.decode()
    assert Dataset.objects.get().status == "asked"
    sent["shown"] = read_shown(refused)
    assert alma.post(answer, sent).status_code == 302


def test_errors_name_the_field_and_keep_what_was_typed(gate: Gate) -> None:
    decided(gate)
    adam = browse(gate.adam)
    wrong: dict[str, dict[str, Any]] = {
        "purpose": {"purpose": " "},
        "owner": {"owner": "u-nobody"},
        "tools": {"tools": ["teleport"]},
        "since": {"since": "2099-01-01"},
        "until": {"until": "yesterday"},
        "train": {"train": "71"},
        "test": {"test": "many"},
    }
    for field, typed in wrong.items():
        sent = fields(gate, **typed)
        response = adam.post(PAGE, sent)
        assert response.status_code == 422, field
        assert read_text(response, f"error-{field}").strip(), field
        html = response.content.decode()
        for name, value in sent.items():
            kept = value if isinstance(value, str) else value[0]
            if kept.strip() and (name not in typed or name not in {"owner", "tools"}):
                assert kept in html, (field, name)
        assert f'value="{gate.otto.public_id}" selected' in html or field == "owner"
    assert not Dataset.objects.exists()
    dataset = ask(gate, purpose="<b>bold</b> & \u202eodd")
    answer = reverse("reviews:dataset_answer", args=[dataset.pk])
    refused = browse(gate.alma).post(
        answer, {"answer": "maybe", "reason": "Too <broad"}
    )
    assert refused.status_code == 422
    assert "Choose to consent or to refuse" in read_text(refused, "problem")
    html = refused.content.decode()
    assert "Too &lt;broad" in html
    assert "<b>bold" not in html
    assert "\u202e" not in html
    empty = browse(gate.alma).post(answer, {"answer": "refuse", "reason": " "})
    assert "Say why" in read_text(empty, "problem")


def test_shares_that_do_not_add_up_are_marked_beside_other_errors(gate: Gate) -> None:
    sent = fields(gate, train="80", until="yesterday")
    response = browse(gate.adam).post(PAGE, sent)
    assert response.status_code == 422
    assert read_text(response, "error-until").startswith("Enter a day")
    for field in ("train", "validation", "test"):
        assert "they are 110 %" in read_text(response, f"error-{field}"), field


def test_a_deleted_file_is_not_offered(gate: Gate) -> None:
    decided(gate)
    dataset = write(gate)
    past = clock.now() - consent.KEPT_FOR
    Dataset.objects.filter(pk=dataset.pk).update(finished_at=past)
    files.delete_old_datasets()
    otto = browse(gate.otto)
    assert "Download" not in read_text(otto.get(PAGE))
    file = reverse("reviews:dataset_file", args=[dataset.pk])
    assert otto.get(file).status_code == 404
