"""Messages in Slack, by a bot: one thread a request, whose first message shows the
outcome once the request is settled.

A message has a link and no button that decides, so nothing comes back from Slack.
Sources: Slack's Web API (chat.postMessage, chat.update, users.lookupByEmail), its rate
limits and the reference of Block Kit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django.conf import settings

from policies.models import Person

from . import calls, content
from .content import MessageSummary
from .contract import Channel, ChannelMessage, DeliveryError

# Replies of these kinds are also shown in the room itself: somebody must act.
BROADCAST_KINDS = frozenset({"escalated", "due_soon", "revoked"})
# Another attempt cannot succeed before a person changes something.
FINAL_ERRORS = frozenset(
    {
        "account_inactive",
        "cant_post_message",
        "channel_not_found",
        "invalid_auth",
        "invalid_blocks",
        "is_archived",
        "missing_scope",
        "msg_too_long",
        "no_permission",
        "not_authed",
        "not_in_channel",
        "restricted_action",
        "token_expired",
        "token_revoked",
    }
)
# The first message is gone or may not be changed any more.
NO_UPDATE_ERRORS = frozenset(
    {"message_not_found", "cant_update_message", "edit_window_closed"}
)
# Block Kit's limits, in characters.
MAX_HEADER, MAX_SECTION, MAX_FIELD = 150, 3000, 2000
MAX_FIELDS = 10


class SlackError(DeliveryError):
    """Slack answered with an error; `code` is Slack's word for it."""

    def __init__(self, code: str) -> None:
        word = code if code.replace("_", "").isalnum() else "an unknown error"
        super().__init__(f"Slack: {word[:80]}", final=code in FINAL_ERRORS)
        self.code = code


class SlackChannel(Channel):
    """Messages in a room of Slack. The message's id is the room's id and the message's
    time, which together name a message in Slack's API."""

    name = "slack"
    title = "Slack"
    variables = ("SLACK_BOT_TOKEN",)

    def is_configured(self) -> bool:
        return bool(settings.COUNTERSEAL.slack_bot_token)

    def dispatch(self, message: ChannelMessage) -> str:
        (line,) = message.lines
        summary = content.summarize_line(line)
        body = {
            "text": escape_text(summary.subject),
            "blocks": build_blocks(summary, find_member_ids(message.people)),
            "unfurl_links": False,
            "unfurl_media": False,
        }
        if message.thread and line.kind == "settled":
            return _update_first(message.thread, body)
        return _post_message(message, body, broadcast=line.kind in BROADCAST_KINDS)


CHANNEL = SlackChannel()


def _post_message(
    message: ChannelMessage, body: dict[str, Any], broadcast: bool
) -> str:
    room = message.target or settings.COUNTERSEAL.slack_channel
    if message.thread:
        room, _, first = message.thread.partition("/")
        body = {**body, "thread_ts": first, "reply_broadcast": broadcast}
    if not room:
        raise DeliveryError(
            "Slack: neither the policy nor SLACK_CHANNEL names a room", final=True
        )
    return _name_message(_call_slack("chat.postMessage", {**body, "channel": room}))


def _update_first(thread: str, body: dict[str, Any]) -> str:
    """Replace the first message about the request. Where Slack refuses that, reply."""
    room, _, first = thread.partition("/")
    try:
        return _name_message(
            _call_slack("chat.update", {**body, "channel": room, "ts": first})
        )
    except SlackError as error:
        if error.code not in NO_UPDATE_ERRORS:
            raise
    reply = {**body, "channel": room, "thread_ts": first}
    return _name_message(_call_slack("chat.postMessage", reply))


def _name_message(answer: dict[str, Any]) -> str:
    return f"{answer['channel']}/{answer['ts']}"


def build_blocks(
    summary: MessageSummary, members: Sequence[str]
) -> list[dict[str, Any]]:
    """The message as Block Kit: a heading, the effect, facts and a link."""
    fields = [
        _build_markdown(f"*{label}*\n{escape_text(value)}"[:MAX_FIELD])
        for label, value in summary.rows
    ]
    title, effect = summary.title[:MAX_HEADER], summary.effect[:MAX_SECTION]
    blocks = [{"type": "header", "text": _build_plain(title)}]
    # Plain text, in which Slack reads no mark-up; it may not be empty.
    blocks += [_build_section(text=_build_plain(effect))] if effect else []
    blocks += [_build_section(fields=fields[:MAX_FIELDS])] if fields else []
    link = f"<{summary.link}|{summary.link_label}>"
    blocks.append(_build_section(text=_build_markdown(link)))
    if members:
        mentions = " ".join(f"<@{member}>" for member in members)
        blocks.append(_build_section(text=_build_markdown(mentions)))
    return blocks


def _build_section(**parts: Any) -> dict[str, Any]:
    return {"type": "section", **parts}


def _build_plain(text: str) -> dict[str, str]:
    return {"type": "plain_text", "text": text}


def _build_markdown(text: str) -> dict[str, str]:
    return {"type": "mrkdwn", "text": text}


def escape_text(text: str) -> str:
    """Text without Slack's mark-up: neither a mention nor a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def find_member_ids(people: Sequence[Person]) -> list[str]:
    """The Slack accounts of these people, found by mail address. People without one are
    left out, and so are those whom Slack cannot look up now: the message is more
    important than a mention."""
    token, members = settings.COUNTERSEAL.slack_bot_token, []
    for person in people:
        with suppress(DeliveryError):
            members.append(_look_up_member(token, person.email))
    return members


@lru_cache(maxsize=4096)
def _look_up_member(token: str, email: str) -> str:
    """The id of the member with this address, kept for the life of the process. Raises
    DeliveryError when there is none or Slack does not answer; that is not kept."""
    answer = _call_slack("users.lookupByEmail", {"email": email}, form=True)
    user = answer.get("user")
    member = str(user.get("id", "")) if isinstance(user, dict) else ""
    if not member.isalnum():
        raise SlackError("users_not_found")
    return member


def _call_slack(
    method: str, arguments: dict[str, Any], *, form: bool = False
) -> dict[str, Any]:
    """Call a method of the Web API; return its answer. Raises DeliveryError."""
    kind = "application/x-www-form-urlencoded" if form else "application/json"
    body = urlencode(arguments) if form else json.dumps(arguments)
    reply = calls.call_service(
        "Slack",
        f"{settings.COUNTERSEAL.slack_api_url}/{method}",
        body.encode(),
        {
            "Authorization": f"Bearer {settings.COUNTERSEAL.slack_bot_token}",
            "Content-Type": f"{kind}; charset=utf-8",
        },
    )
    answer = calls.parse_object(reply)
    if answer.get("ok") is True:
        return answer
    code = answer.get("error")
    if not isinstance(code, str):
        raise DeliveryError(
            f"Slack: status {reply.status} without an answer of Slack's"
        )
    if code in {"ratelimited", "rate_limited"}:
        raise DeliveryError(
            "Slack: too many messages", retry_after=timedelta(seconds=30)
        )
    raise SlackError(code)
