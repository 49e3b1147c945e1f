"""What the decision panel offers in a queue, as an administrator sets it: which reasons
of each verdict, in which order, and ready texts for the note.

A preset changes what people are offered, never what a verdict accepts: the reason codes
are a contract with agents, and the API for people takes all of them in every queue.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from django.core.exceptions import ObjectDoesNotExist

from journal import canonical, clock, log
from journal.errors import FieldError, InvalidArgs, NotFound, build_field_error
from journal.operations import operation
from policies import locks, people
from policies.models import Person, Queue
from reviews.choices import REASON_LABELS, VERDICT_SPECS, ReasonCode, Verdict
from reviews.models import QueuePreset

from . import second_person

MOST_TEXTS = 10
LONGEST_TEXT = 500  # characters
Reasons = Mapping[Verdict, Sequence[ReasonCode]]


@dataclass(frozen=True, slots=True)
class ReadyText:
    """A text that a reviewer can put into the note. `key` names it in forms: another
    text never has the same, however the list changes meanwhile."""

    text: str

    @property
    def key(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class OfferedPreset:
    """What one queue offers; a verdict without a list offers all of its reasons."""

    reasons: Reasons
    texts: Sequence[ReadyText]

    def list_reasons(self, verdict: Verdict) -> Sequence[ReasonCode]:
        """The reasons of a verdict, in the order of its panel."""
        return self.reasons.get(verdict) or VERDICT_SPECS[verdict].reasons

    @property
    def parts(self) -> dict[str, Sequence[str]]:
        """What the queue offers, by names of its parts in words."""
        reasons = {
            f"the reasons to {verdict}": [
                REASON_LABELS[code] for code in self.list_reasons(verdict)
            ]
            for verdict in VERDICT_SPECS
        }
        texts = dict(zip_longest(range(MOST_TEXTS), self.texts))
        return reasons | {
            f"text {number + 1}": [ready.text] if ready else []
            for number, ready in texts.items()
        }

    def find_text(self, key: str) -> str:
        """The text with this key; "" for one that is not offered."""
        return next((ready.text for ready in self.texts if ready.key == key), "")


def read_preset(queue: Queue) -> OfferedPreset:
    """What the queue offers. One query, unless the queue was loaded with its preset."""
    try:
        row: QueuePreset = queue.preset
    except ObjectDoesNotExist:
        return OfferedPreset({}, ())
    reasons = {
        verdict: [ReasonCode(code) for code in row.reasons[verdict]]
        for verdict in Verdict
        if verdict in row.reasons
    }
    return OfferedPreset(reasons, [ReadyText(text) for text in row.texts])


@operation(
    locks="the queue's preset (advisory)",
    writes="QueuePreset",
    logs="queue.preset_changed",
)
def change_preset(
    *,
    queue_name: str,
    reasons: Reasons,
    texts: Sequence[str],
    reason: str,
    by: Person,
    shown: str = "",
) -> QueuePreset:
    """Set what the panel offers in a queue. Empty texts are left out. `shown` is the
    `canonical.format_shown` of the parts that the administrator read; empty without a
    page.

    Raises NotFound, NotPermitted for anyone but an administrator, TextMissing without a
    reason, StaleVersion, and InvalidArgs for a verdict without a reason or with one of
    another verdict, for a text that is too long or there twice, and for too many texts.
    """
    people.check_administrator(by)
    why = second_person.read_reason(reason)
    queue = Queue.objects.filter(name=queue_name).first()
    if queue is None:
        raise NotFound
    locks.lock_preset(queue.pk)
    parts = read_preset(queue).parts
    canonical.check_shown(shown, parts, "Nothing was changed.")  # guard: preset-shown
    typed = [text.strip().replace("\r\n", "\n") for text in texts]
    if errors := [*_list_reason_errors(reasons), *_list_text_errors(typed)]:
        raise InvalidArgs("Nothing was changed.", errors=errors)
    now = clock.now()
    preset = QueuePreset(
        queue=queue,
        # All in the verdict's own order is not stored: a reason that a later version
        # of the product adds is then offered too.
        reasons={
            verdict.value: [code.value for code in codes]
            for verdict, codes in reasons.items()
            if tuple(codes) != VERDICT_SPECS[verdict].reasons
        },
        texts=[text for text in typed if text],
        changed_at=now,
    )
    QueuePreset.objects.bulk_create(
        [preset],
        update_conflicts=True,
        unique_fields=["queue"],
        update_fields=["reasons", "texts", "changed_at"],
    )
    log.append(
        "queue.preset_changed",
        actor=people.build_actor(by),
        at=now,
        data={
            "queue": queue.name,
            "reasons": preset.reasons,
            "count": len(preset.texts),
        },
        private={"reason": why, "texts": preset.texts},
    )
    return preset


def _list_reason_errors(reasons: Reasons) -> list[FieldError]:
    errors = []
    for verdict in Verdict:
        codes, own = reasons.get(verdict, ()), VERDICT_SPECS[verdict].reasons
        path = f"reasons.{verdict}"
        if not codes:
            rule = "offer at least one reason: number it"
            errors.append(build_field_error(path, rule))
        elif not set(codes) <= set(own) or len(set(codes)) != len(codes):
            labels = ", ".join(REASON_LABELS[code] for code in own)
            errors.append(build_field_error(path, f"each of these once: {labels}"))
    return errors


def _list_text_errors(texts: Sequence[str]) -> list[FieldError]:
    errors = []
    if len([text for text in texts if text]) > MOST_TEXTS:
        rule = f"at most {MOST_TEXTS} texts; leave some empty"
        errors.append(build_field_error("texts.0", rule))
    for number, text in enumerate(texts):
        if len(text) > LONGEST_TEXT:
            rule = f"at most {LONGEST_TEXT} characters; this has {len(text)}"
            errors.append(build_field_error(f"texts.{number}", rule))
        elif text and text in texts[:number]:
            rule = "there already; leave one of the two empty"
            errors.append(build_field_error(f"texts.{number}", rule))
    return errors
