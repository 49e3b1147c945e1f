"""Every page in every state, wide and narrow, light and dark: axe finds nothing,
nothing scrolls sideways, the console is silent and nobody else is asked (ux.md 6.4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from tests.conftest import Gate

from . import stage, studio
from .rooms import ROOMS
from .scene import Room

pytestmark = [
    pytest.mark.browser,
    pytest.mark.proof,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(300),
]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_no_scene_has_a_fault(
    room: Room,
    gate: Gate,
    live_server: LiveServer,
    browser: Browser,
    settings: Settings,
    tmp_path: Path,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    settings.ROOT_URLCONF = room.urls or settings.ROOT_URLCONF
    scenery = stage.set_up(gate, tmp_path)
    room.furnish(scenery)
    some = proof_n(small=1, full=4) < 4
    window = studio.Studio(browser, live_server.url, scenery, some=some)
    faults = [fault for scene in room.scenes for fault in window.faults(scene)]
    window.close()
    assert not faults, "\n".join(faults)
    line = f"{room.name}: {len(room.scenes)} scenes, each {window.seen}: 0 violations"
    record_proof("axe", line)
