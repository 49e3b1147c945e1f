"""The page's worker in a real Chromium: it shows a push message, and registers as the
page's button does. A headless Chromium has no push service, so the message comes from
its debugging protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from reviews.models import PushSubscription
from tests.browser.conftest import SitDown
from tests.conftest import Gate
from tests.notifications.channels.browsers import RFC_AUTH, RFC_KEY

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# What a push service would have answered the browser.
SUBSCRIBE = """
PushManager.prototype.subscribe = async options => ({
  toJSON: () => ({
    endpoint: "https://push.example.com/" + options.applicationServerKey.length,
    keys: {p256dh: %r, auth: %r},
  }),
});
"""
# A headless Chromium has no screen for notifications either: it refuses each. So the
# worker's last call is recorded.
RECORD = """() => {
  self.shown = new Promise(resolve => {
    ServiceWorkerRegistration.prototype.showNotification =
      async (title, { body, data }) => resolve({ title, body, path: data.path });
  });
}"""


def test_a_browser_registers_and_its_worker_shows_a_message(
    gate: Gate, sit_down: SitDown, settings: Any
) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"vapid_key": bytes(range(32))}
    )
    rita = sit_down("rita")
    page = rita.page
    page.context.grant_permissions(["notifications"], origin=rita.base)
    page.add_init_script(SUBSCRIBE % (RFC_KEY, RFC_AUTH))
    tools = page.context.new_cdp_session(page)
    found: list[str] = []
    tools.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: found.extend(
            one["registrationId"] for one in event["registrations"]
        ),
    )
    tools.send("ServiceWorker.enable")
    rita.open("/me/notifications/")
    check_manifest(tools)
    page.get_by_role("button", name="Register this browser").click()
    expect(page.get_by_text("is registered for push messages")).to_be_visible()
    row = PushSubscription.objects.get(person=gate.rita)
    assert (row.endpoint, row.p256dh) == ("https://push.example.com/87", RFC_KEY)
    expect(page.get_by_test_id("push")).to_contain_text("Chrome on Linux")
    message = {"title": "Approval needed", "body": "Pay 5.00", "path": "/requests/r-1/"}
    (worker,) = page.context.service_workers
    worker.evaluate(RECORD)
    tools.send(
        "ServiceWorker.deliverPushMessage",
        {
            "origin": rita.base,
            "registrationId": found[-1],
            "data": json.dumps(message),
        },
    )
    assert worker.evaluate("() => self.shown") == message


def check_manifest(tools: Any) -> None:
    """The browser itself reads the manifest, and finds nothing wrong with it. It finds
    the icons, too."""
    found = tools.send("Page.getAppManifest")
    assert found["url"].endswith("/manifest.webmanifest")
    assert found["errors"] == []
    icons = tools.send("Page.getInstallabilityErrors")["installabilityErrors"]
    wrong = {one["errorId"] for one in icons}
    assert not {one for one in wrong if "icon" in one or "manifest" in one}, wrong
