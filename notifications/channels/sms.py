"""Text messages to a person's phone, by Twilio's Messages API and services that have
the same."""

from __future__ import annotations

import base64
from urllib.parse import quote, urlencode

from django.conf import settings

from policies.models import Person
from reviews.people import preferences

from . import calls, content
from .contract import Channel, ChannelMessage, DeliveryError

# A message within this length is at most three parts, each of which costs money.
MAX_LENGTH = 450
SERVICE_PREFIX = "MG"  # of a messaging service, which stands for a sender's number


class SmsChannel(Channel):
    """A text message to the number that the person entered. The message's id is the
    service's `sid`."""

    name = "sms"
    title = "Text message"
    variables = ("SMS_ACCOUNT", "SMS_TOKEN")
    is_personal = True

    def is_configured(self) -> bool:
        counterseal = settings.COUNTERSEAL
        return bool(counterseal.sms_account and counterseal.sms_token)

    def find_address(self, person: Person) -> str:
        return preferences.load_preferences(person).notifications.phone

    def dispatch(self, message: ChannelMessage) -> str:
        assert message.person is not None  # it is a personal channel
        counterseal = settings.COUNTERSEAL
        sender = counterseal.sms_from
        by_service = sender.startswith(SERVICE_PREFIX)
        form = {
            "To": self.find_address(message.person),
            "MessagingServiceSid" if by_service else "From": sender,
            "Body": build_text(message),
        }
        account = counterseal.sms_account
        secret = base64.b64encode(f"{account}:{counterseal.sms_token}".encode())
        reply = calls.call_service(
            "Text message",
            f"{counterseal.sms_api_url}/2010-04-01/Accounts/{quote(account)}/Messages.json",
            urlencode(form).encode(),
            {
                "Authorization": f"Basic {secret.decode()}",
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        answer = calls.parse_object(reply)
        if calls.is_success(reply) and isinstance(answer.get("sid"), str):
            return str(answer["sid"])
        # A wrong number, a blocked sender or a wrong token: a person must change it.
        code = answer.get("code")
        problem = f"error {code}" if isinstance(code, int) else f"status {reply.status}"
        raise DeliveryError(f"Text message: {problem}", final=True)


CHANNEL = SmsChannel()


def build_text(message: ChannelMessage) -> str:
    """The text in the characters of the GSM alphabet, so that it has few parts."""
    if message.is_test:
        link = content.build_link("/me/notifications/")
        return f"Test message from Counterseal\n{link}"
    if message.is_digest:
        subject = content.format_digest_subject(message.lines, message.rest)
        return f"{subject}\n{content.build_link('/queue/')}"
    (line,) = message.lines
    summary = content.summarize_line(line)
    end = f"\n{summary.link}"
    effect = summary.effect.replace(content.LEFT_OUT, "[...]")
    text = f"{summary.subject}\n{effect}"
    return text[: MAX_LENGTH - len(end)] + end
