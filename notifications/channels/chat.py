"""Messages by incoming webhooks of chat programs: Slack's form, which Mattermost and
others read too, and Adaptive Cards for the workflows of Microsoft Teams.

The policy names a webhook (`chat:ops`), and the setting CHAT_WEBHOOKS has its address,
which is a secret. Such a webhook returns no id and cannot change a message, so every
message stands alone and the id is Counterseal's own.
"""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings

from . import calls, content
from .content import MessageSummary
from .contract import Channel, ChannelMessage, DeliveryError
from .slack import escape_text

TEAMS_PREFIX = "teams+"
# The colour of the bar beside the facts: by risk, like the pages.
COLOURS = {"critical": "#8b1a1a", "high": "#b45309", "medium": "#1d4ed8"}


class ChatChannel(Channel):
    """Messages to an incoming webhook that the settings name."""

    name = "chat"
    title = "Chat"
    variables = ("CHAT_WEBHOOKS",)

    def is_configured(self) -> bool:
        return bool(settings.COUNTERSEAL.chat_webhooks)

    def dispatch(self, message: ChannelMessage) -> str:
        known: dict[str, str] = settings.COUNTERSEAL.chat_webhooks
        name = message.target or next(iter(known))
        if name not in known:
            raise DeliveryError(
                f"Chat: CHAT_WEBHOOKS has no webhook {name}", final=True
            )
        (line,) = message.lines
        summary = content.summarize_line(line)
        url = known[name]
        build = build_card if url.startswith(TEAMS_PREFIX) else build_attachment
        reply = calls.call_service(
            "Chat",
            url.removeprefix(TEAMS_PREFIX),
            json.dumps(build(summary)).encode(),
            {"Content-Type": "application/json"},
        )
        if not calls.is_success(reply):
            # The address is withdrawn or the room is gone: a person must change it.
            raise DeliveryError(f"Chat: {name} answered {reply.status}", final=True)
        return f"{name}/{message.key}"


CHANNEL = ChatChannel()


def build_attachment(summary: MessageSummary) -> dict[str, Any]:
    """The message in the form of Slack's incoming webhooks."""
    risk = dict(summary.rows).get("Risk", "")
    return {
        "text": f"<{summary.link}|{escape_text(summary.subject)}>",
        "attachments": [
            {
                "fallback": escape_text(summary.subject),
                "color": COLOURS.get(risk, "#6b7280"),
                "text": escape_text(summary.effect),
                "mrkdwn_in": [],
                "fields": [
                    {"title": label, "value": escape_text(value), "short": True}
                    for label, value in summary.rows
                ],
            }
        ],
    }


def build_card(summary: MessageSummary) -> dict[str, Any]:
    """The message as an Adaptive Card, the form of Teams' workflow webhooks."""
    facts = [
        {"title": label, "value": _escape_markdown(value)}
        for label, value in summary.rows
    ]
    heading = {
        "type": "TextBlock",
        "text": _escape_markdown(summary.title),
        "weight": "Bolder",
        "size": "Medium",
        "wrap": True,
    }
    effect = {
        "type": "TextBlock",
        "text": _escape_markdown(summary.effect),
        "wrap": True,
    }
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [heading, effect, {"type": "FactSet", "facts": facts}],
        "actions": [
            {
                "type": "Action.OpenUrl",
                "title": summary.link_label,
                "url": summary.link,
            }
        ],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {
        "type": "message",
        "attachments": [{"contentType": kind, "contentUrl": None, "content": card}],
    }


def _escape_markdown(text: str) -> str:
    """Text in which an Adaptive Card reads no mark-up."""
    return "".join(f"\\{char}" if char in "\\`*_[]()#+-!>|~" else char for char in text)
