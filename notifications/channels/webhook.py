"""Notifications as signed webhooks (Standard Webhooks), for programs that bring people
to the page in their own way.

The policy names a webhook (`webhook:pager`), and the setting NOTIFY_WEBHOOKS has its
address. The signature is made with WEBHOOK_SECRET, like that of calls to tools'
services. The id stays the same over all attempts, so a receiver can drop repetitions.
"""

from __future__ import annotations

from django.conf import settings

from journal import clock
from reviews.outbound import webhooks

from . import calls, content
from .contract import Channel, ChannelMessage, DeliveryError


class WebhookChannel(Channel):
    """A signed webhook to an address that the settings name."""

    name = "webhook"
    title = "Webhook"
    variables = ("NOTIFY_WEBHOOKS",)

    def is_configured(self) -> bool:
        return bool(settings.COUNTERSEAL.notify_webhooks)

    def dispatch(self, message: ChannelMessage) -> str:
        known: dict[str, str] = settings.COUNTERSEAL.notify_webhooks
        name = message.target or next(iter(known))
        if name not in known:
            raise DeliveryError(
                f"Webhook: NOTIFY_WEBHOOKS has no webhook {name}", final=True
            )
        body = webhooks.encode_payload(_build_payload(message))
        message_id = f"notice-{message.key}"
        signed = webhooks.build_signature_headers(
            body, message_id, [settings.COUNTERSEAL.webhook_secret]
        )
        reply = calls.call_service("Webhook", known[name], body, signed)
        if not calls.is_success(reply):
            raise DeliveryError(f"Webhook: {name} answered {reply.status}")
        return message_id


CHANNEL = WebhookChannel()


def _build_payload(message: ChannelMessage) -> dict[str, object]:
    (line,) = message.lines
    summary = content.summarize_line(line)
    data = {
        "event": line.kind,
        "id": str(line.about.pk),
        "title": summary.title,
        "effect": summary.effect,
        "facts": [{"label": label, "value": value} for label, value in summary.rows],
        "link": summary.link,
        "waits": line.waits,
    }
    return {
        "type": "notification",
        "timestamp": clock.now().isoformat(),
        "data": data,
    }
