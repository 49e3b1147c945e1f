"""The manifest of the web application."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import resolve

from hitl import web_app

pytestmark = [pytest.mark.django_db]


def test_the_manifest_opens_the_queue_and_its_icons_have_their_sizes(
    client: Client,
) -> None:
    answer = client.get("/manifest.webmanifest")
    assert answer.headers["Content-Type"] == "application/manifest+json"
    assert answer.headers["Cache-Control"] == f"public, max-age={web_app.CACHE_S}"
    manifest = json.loads(answer.content)
    assert resolve(manifest["start_url"]).view_name == "reviews:queue"
    for icon in manifest["icons"]:
        found = finders.find(icon["src"].removeprefix("/static/"))
        assert found is not None, icon
        head = Path(found).read_bytes()[:24]
        assert head.startswith(b"\x89PNG")
        assert "{}x{}".format(*struct.unpack(">II", head[16:])) == icon["sizes"]


def test_each_page_names_the_manifest(client: Client) -> None:
    assert (
        b'rel="manifest" href="/manifest.webmanifest"' in client.get("/help/").content
    )
