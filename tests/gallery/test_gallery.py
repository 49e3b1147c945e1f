"""Every page in every state, wide and narrow, light and dark: axe finds nothing,
nothing scrolls sideways, the console is silent and nobody else is asked.
Every page that can be asked for has a scene, and so has every state and refusal of the
review page that is listed here."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from tests import guards
from tests.browser.conftest import Desk
from tests.conftest import Gate
from tests.gallery.scene import SceneGroup
from tests.gallery.scenes import GROUPS, SCENES
from tests.gallery.store import open_store
from tests.gallery.viewer import FOLDER, WITHOUT_NOTO, Viewer, open_window
from tests.security.routes import ROUTES

# What a GET answers with, where that is no page of its own.
NOT_PAGES = {
    "livez": "JSON",
    "readyz": "JSON",
    "metrics": "figures for Prometheus",
    "jwks": "JSON",
    "manifest": "JSON",
    "authzen_metadata": "JSON",
    "client_wheel": "a file",
    "reviews:provider_sign_in": "leads to the identity provider",
    "reviews:provider_callback": "leads back from it",
    "reviews:home": "leads to the page where one's work is",
    "reviews:queue_fresh": "a fragment of the queue",
    "reviews:events": "a stream",
    "reviews:live": "a fragment of the review page",
    "reviews:batch_live": "a fragment of the batch's page",
    "reviews:stopped_live": "a fragment of a stop's page",
    "reviews:export_file": "a file",
    "reviews:dataset_file": "a file",
    "reviews:evidence_file": "a file",
    "reviews:evidence_picture": "a picture",
    "reviews:statistics_csv": "a file",
}
# Every state in which a review page can be, and its scene.
STATES = {
    "Pending, free": "review-waiting",
    "Pending, leased to me": "review-mine",
    "Held by someone else": "review-held",
    "Changed while you were reading": "review-changed",
    "Target moved": "review-moved",
    "Expired while reading": "over-expired-open",
    "Already decided": "over-decided-open",
    "Escalated": "review-escalated",
    "Awaiting second approval": "review-second",
    "Approved, recall open": "over-recallable",
    "Executing": "over-running",
    "Executed": "over-executed",
    "Failed": "over-failed",
    "Stopped": "over-stopped",
    "Cancelled by agent": "over-withdrawn",
    "Part of a batch": "review-batch-member",
    "Rejected by policy after modify": "refused-policy",
    "Offline": "review-offline",
    "Canary revealed": "assurance-missed",
    "Signed out": "review-signed-out",
}
# Every code that a person can be refused with, and the scene that shows its answer.
CODES = {
    "held": "refused-held",
    "stale": "refused-stale",
    "precondition": "refused-precondition",
    "decided": "refused-decided",
    "expired": "refused-expired",
    "withdrawn": "refused-withdrawn",
    "running": "error-409-running",
    "lease-lapsed": "refused-lease-lapsed",
    "digest-missing": "refused-incomplete",
    "batch-changed": "batch-changed",
    "too-fast": "refused-too-fast",
    "policy": "refused-policy",
    "reason": "refused-reason",
    "not-yours": "error-403",
    "reauth": "refused-reauth",
    "session": "error-403-signed-out",
    "throttle": "refused-throttle",
    "server": "error-500",
}
NAMES = [scene.name for scene in SCENES]


@pytest.fixture(scope="module")
def windows(
    browser: Browser,
    launch_browser: Callable[..., Browser],
    live_server: LiveServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[list[Desk]]:
    """One window for all looks; where one look at a scene is enough, another one beside
    it for narrow pages, in another font."""
    browsers = [browser]
    if not (guards.proving() or os.environ.get(FOLDER)):
        fonts = tmp_path_factory.mktemp("fonts") / "fonts.conf"
        fonts.write_text(WITHOUT_NOTO)
        environ = {**os.environ, "FONTCONFIG_FILE": str(fonts)}
        browsers.append(launch_browser(env=environ))
    desks = [open_window(browser, live_server.url) for browser in browsers]
    yield desks
    for desk in desks:
        desk.page.context.close()
    for other in browsers[1:]:
        other.close()


@pytest.mark.browser
@pytest.mark.proof
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_no_scene_has_a_fault(
    group: SceneGroup,
    gate: Gate,
    windows: list[Desk],
    settings: Settings,
    tmp_path: Path,
    record_proof: Callable[[str, str], None],
) -> None:
    settings.ROOT_URLCONF = group.urls or settings.ROOT_URLCONF
    # With a name, so that the pages offer passkeys.
    mode = {"solo": group.solo, "base_url": "http://localhost:8000"}
    if group.federated:
        mode |= {"oidc_issuer": "https://id.example.org", "oidc_name": "Example ID"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=mode)
    store = open_store(gate, tmp_path)
    group.prepare(store)
    viewer = Viewer(store, *windows)
    faults = [fault for scene in group.scenes for fault in viewer.find_faults(scene)]
    viewer.leave()
    assert not faults, "\n".join(faults)
    assert set(group.shows) <= viewer.routes
    line = f"{group.name}: {len(group.scenes)} scenes, each {viewer.seen}: 0 violations"
    record_proof("axe", line)


def test_every_page_has_a_scene() -> None:
    shown = {name for group in GROUPS for name in group.shows}
    pages = {
        name
        for name, row in ROUTES.items()
        if row.get and not name.startswith("api:") and name not in NOT_PAGES
    }
    assert pages - shown == set()
    assert shown - set(ROUTES) == set()


def test_what_is_left_out_is_there() -> None:
    assert NOT_PAGES.keys() <= ROUTES.keys()


def test_every_state_and_refusal_has_a_scene() -> None:
    assert {*STATES.values(), *CODES.values()} <= set(NAMES)


def test_a_name_is_one_picture() -> None:
    assert [name for name, count in Counter(NAMES).items() if count > 1] == []
