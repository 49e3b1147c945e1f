"""What a channel is: it takes a message to people and returns the message's id.

A message consists of facts and a link. No channel can decide anything: whoever follows
the link signs in, and the page checks whether they may decide.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from policies.models import Person
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Execution,
    NotificationDrill,
    Question,
)


@dataclass(frozen=True, slots=True)
class MessageLine:
    """What a message says about one request, execution, alarm, drill or question."""

    what: str
    about: ApprovalRequest | Execution | Alarm | NotificationDrill | Question
    waits: bool = False  # whether it waits for its reader's decision
    kind: str = ""  # of the event, as in `notifications.events`
    channel: str = ""  # by which it goes


@dataclass(frozen=True, slots=True)
class MessageRemainder:
    """What a digest has no room for: the number of subjects, and how many wait."""

    count: int = 0
    waiting: int = 0


NO_REMAINDER = MessageRemainder()


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    """One message to a person, or to a place where several people read.

    It has one line, or several in a digest, or none in a test message.
    """

    key: str  # the same over all attempts
    lines: Sequence[MessageLine] = ()
    person: Person | None = None
    target: str = ""  # the place, as the policy names it; empty: the channel's default
    is_digest: bool = False
    rest: MessageRemainder = NO_REMAINDER
    # The id of the first message about the same request in this place.
    thread: str = ""
    people: Sequence[Person] = ()  # who may decide; a channel may mention them

    @property
    def is_test(self) -> bool:
        """Whether its only purpose is to show that messages arrive."""
        return not self.lines and not self.rest.count


class DeliveryError(Exception):
    """A channel did not take a message. The text is in Counterseal's words and is shown
    on the request's page.

    `retry_after` is how long the receiver asks to wait. `final` means that another
    attempt cannot succeed.
    """

    def __init__(
        self, text: str, *, retry_after: timedelta | None = None, final: bool = False
    ) -> None:
        super().__init__(text)
        self.retry_after = retry_after
        self.final = final


class Channel(ABC):
    """One way to reach people. A module of this folder that sets `CHANNEL` to an
    instance adds it."""

    name: str  # as the policy and the preferences name it
    title: str  # as pages name it
    variables: Sequence[str]  # of the environment, which set it up
    # Whether a message goes to one person, by the person's preferences. Other channels
    # send to a place, once for all people.
    is_personal: bool = False

    @abstractmethod
    def is_configured(self) -> bool:
        """Whether the deployment's settings allow to send on this channel."""

    def find_address(self, person: Person) -> str:
        """Where this person is reached, for a page to show; "" where they are not.
        Personal channels only."""
        return ""

    def select_reachable(self, people: Sequence[Person]) -> set[int]:
        """The primary keys of those of the people whom the channel reaches. Personal
        channels only."""
        return {person.pk for person in people if self.find_address(person)}

    @abstractmethod
    def dispatch(self, message: ChannelMessage) -> str:
        """Send the message and return the id that the channel gave it.

        Raises DeliveryError, or another exception for a fault that Counterseal's own
        code must answer for. Caller holds no transaction.
        """
