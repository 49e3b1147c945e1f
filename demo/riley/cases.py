"""A case: one message and everything that Riley knows about it, as plain data.

Riley reads a message by patterns and believes every word of it. The gate's checkpoint
keeps a case as an opaque blob.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from counterseal_client import ThreadResult

Message = Mapping[str, str]
"""A message as the store's inbox serves it. Nothing in it is checked."""


SPECS = yaml.safe_load(Path(__file__).with_name("actions.yaml").read_text("utf-8"))
INTENTS: dict[str, Any] = SPECS["intents"]
FACTS = {name: re.compile(it, re.ASCII) for name, it in SPECS["facts"].items()}
ORDER = FACTS["order_id"]
MAILBOX = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
AMOUNT = re.compile(r"\b\d{1,5}\.\d\d\b", re.ASCII)


@dataclass(frozen=True, slots=True)
class Case:
    """Where the work on one message stands.

    `agenda` names the actions still to propose, the first is next. `known` holds the
    facts of the message and, under `did`, the results so far. `tries` counts proposals
    by action.
    """

    thread: str
    message: str
    intent: str
    agenda: tuple[str, ...]
    known: Mapping[str, Any] = field(default_factory=dict)
    tries: Mapping[str, int] = field(default_factory=dict)
    steps: int = 0
    result: ThreadResult = "completed"
    notes: tuple[str, ...] = ()

    @property
    def action(self) -> str:
        """The next action, or the one that waits for its outcome."""
        return self.agenda[0] if self.agenda else ""

    @property
    def order(self) -> Mapping[str, Any]:
        """The order as the store reported it; empty before the look-up."""
        return self.get_result("look_up")

    def get_result(self, action: str) -> Mapping[str, Any]:
        """The result of an action; empty if it was not carried out."""
        results: Mapping[str, Mapping[str, Any]] = self.known.get("did", {})
        return results.get(action, {})

    def learn(self, **facts: Any) -> Case:
        """The case with more facts."""
        return replace(self, known={**self.known, **facts})

    def complete(self, result: Mapping[str, Any]) -> Case:
        """The case after its next action was carried out."""
        did = {**self.known.get("did", {}), self.action: dict(result)}
        return self.learn(did=did).skip()

    def skip(self) -> Case:
        """The case without its next action."""
        return replace(self, agenda=self.agenda[1:])

    def turn_to(self, *agenda: str, result: ThreadResult | None = None) -> Case:
        """The case with another agenda, and another result if one is given."""
        return replace(self, agenda=agenda, result=result or self.result)

    def note(self, text: str) -> Case:
        """The case with one more line about its next action."""
        return replace(self, notes=(*self.notes, f"{self.action}: {text}"))

    def count_try(self, number: int = 1) -> Case:
        """The case after its next action was proposed once more."""
        tries = self.tries.get(self.action, 0) + number
        return replace(self, tries={**self.tries, self.action: tries})

    def dump(self) -> bytes:
        """The case as bytes, for the checkpoint."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def load(cls, blob: bytes) -> Case:
        """The case from its bytes."""
        data = json.loads(blob)
        agenda, notes = tuple(data.pop("agenda")), tuple(data.pop("notes"))
        return cls(agenda=agenda, notes=notes, **data)


def begin_cases(message: Message, *, taken: Container[str] = ()) -> list[Case]:
    """The cases of a new message: one, or one for each order that needs a return label,
    so that no order waits for another's answer.

    A thread is named after its order, unless another message has `taken` that name.
    """
    text = strip_invisible(f"{message['subject']}\n{message['body']}")
    known = _find_facts(text)
    flat = " ".join(text.lower().split())
    intent = next(name for name in INTENTS if re.search(INTENTS[name]["pattern"], flat))
    thread = f"order_{known.get('order_id')}"
    if "order_id" not in known or thread in taken:
        thread = f"ticket_{message['id']}"
    # What the message tells Riley to do comes before the last action of the intent.
    commands = [action for action in ("label_told", "wire") if action in known]
    *agenda, last = INTENTS[intent]["agenda"]
    known["sender"] = message["from"]
    case = Case(thread, message["id"], intent, (*agenda, *commands, last), known)
    orders = list(dict.fromkeys(ORDER.findall(strip_invisible(message["body"]))))
    if intent != "return" or len(orders) < 2:
        return [case]
    return [
        replace(
            case.learn(order_id=order),
            thread=f"ticket_{message['id']}_{order}",
            agenda=("look_up", "return_label"),
        )
        for order in orders
    ]


def strip_invisible(text: str) -> str:
    """The text without invisible characters, as a person reads it."""
    visible = (
        c for c in text if c == "\n" or unicodedata.category(c) not in ("Cf", "Cc")
    )
    return "".join(visible).replace("\u00a0", " ")


def _find_facts(text: str) -> dict[str, Any]:
    matches = {name: pattern.search(text) for name, pattern in FACTS.items()}
    facts: dict[str, Any] = {
        name: match.groupdict() or match[0] for name, match in matches.items() if match
    }
    if "document" in facts:
        facts["document"] = facts["document"].lower()
    if amounts := AMOUNT.findall(text):
        facts["amount"] = amounts[-1]
    if boxes := MAILBOX.findall(text):
        facts["listed"] = list(dict.fromkeys(boxes))
    return facts
