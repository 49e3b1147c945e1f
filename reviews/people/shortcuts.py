"""The table of all keyboard shortcuts of the desk, and a person's own keys. No I/O.

Buttons name their key in `data-key`, the help and preferences pages print this table,
and the script translates a person's own keys into the default ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

CHORD_PREFIX = "g "  # the prefix of a shortcut of two strokes: g, then another key
# Labels of keys that have no printable character.
KEY_LABELS = {
    " ": "Space",
    "Escape": "Esc",
    "Control+Enter": "Ctrl Enter",
    "Control+k": "Ctrl K",
}


@dataclass(frozen=True, slots=True)
class Shortcut:
    """One action and its default key; a `fixed` key cannot be changed."""

    key: str
    where: str
    does: str
    fixed: bool = False


def _build_fixed_shortcut(key: str, where: str, does: str) -> Shortcut:
    return Shortcut(key, where, does, fixed=True)


SHORTCUTS = (
    Shortcut("j", "Lists", "Next row"),
    Shortcut("k", "Lists", "Previous row"),
    Shortcut("o", "Lists", "Open the row"),
    Shortcut("v", "Lists", "Preview the row"),
    _build_fixed_shortcut("Enter", "Lists", "Open the selected row, or the first one"),
    _build_fixed_shortcut(
        " ", "Batch", "Toggle row; Shift selects a range. Enter opens the row in place"
    ),
    Shortcut("n", "Review", "Next request in my queue"),
    Shortcut("p", "Review", "Previous request in my queue"),
    Shortcut("a", "Review", "Open Approve"),
    Shortcut("m", "Review", "Open Modify"),
    Shortcut("x", "Review", "Open Reject"),
    Shortcut("u", "Review", "Open Escalate"),
    Shortcut("q", "Review", "Ask or answer the agent"),
    Shortcut("b", "Review", "Send back to the agent for revision"),
    Shortcut("c", "Review", "Claim or release, or accept what is offered to you"),
    Shortcut("h", "Review", "Hand over to a colleague"),
    Shortcut("e", "Review", "Open Extend"),
    Shortcut("r", "Review", "Review the new version"),
    Shortcut("d", "Review", "Switch between unified and side-by-side differences"),
    Shortcut(".", "Review", "Expand or collapse all sections"),
    Shortcut("[", "Review", "Previous heading"),
    Shortcut("]", "Review", "Next heading"),
    Shortcut("z", "Review", "Undo approval, while the window is open"),
    _build_fixed_shortcut(
        "1-9", "Panel", "Choose a reason or an answer; two digits begin the note"
    ),
    _build_fixed_shortcut("Control+Enter", "Panel", "Confirm the open panel"),
    _build_fixed_shortcut("Escape", "Panel", "Cancel and return the focus"),
    Shortcut("s", "Everywhere", "Open Stop; nothing stops until you confirm"),
    Shortcut("/", "Everywhere", "Find a request, order, person, agent or page"),
    _build_fixed_shortcut("Control+k", "Everywhere", "The same"),
    Shortcut("?", "Everywhere", "Show these shortcuts"),
    Shortcut("g q", "Go to", "Queue"),
    Shortcut("g u", "Go to", "Questions"),
    Shortcut("g e", "Go to", "Escalations"),
    Shortcut("g b", "Go to", "Batches"),
    Shortcut("g n", "Go to", "Activity"),
    Shortcut("g o", "Go to", "Overview"),
    Shortcut("g r", "Go to", "Agents and their runs"),
    Shortcut("g a", "Go to", "Alarms"),
    Shortcut("g l", "Go to", "Audit log"),
    Shortcut("g p", "Go to", "Policy"),
)
RESERVED_KEYS = frozenset("g123456789 ")  # prefix, reason keys, batch row key


@dataclass(frozen=True, slots=True)
class PersonalShortcut:
    """One action and the key that this person uses for it."""

    shortcut: Shortcut
    key: str

    @property
    def strokes(self) -> list[str]:
        """The labels of the keys to press, such as `G`, `Q`."""
        if self.key in KEY_LABELS or self.shortcut.fixed:
            return format_key(self.key).split(" ")
        return [format_key(part) for part in self.key.split(" ")]

    @property
    def field(self) -> str:
        """The name of its field in the preferences form."""
        return f"key-{SHORTCUTS.index(self.shortcut)}"

    @property
    def last(self) -> str:
        """The value of that field: the stroke after `g`, or the only stroke."""
        return self.key.removeprefix(CHORD_PREFIX)


def format_key(key: str) -> str:
    """The label of a key, such as `G` or `Esc`."""
    return KEY_LABELS.get(key, key.upper() if len(key) == 1 else key)


def list_shortcuts(own_keys: Mapping[str, str]) -> list[PersonalShortcut]:
    """Every action with its key; `own_keys` maps default keys to the person's own."""
    return [
        PersonalShortcut(shortcut, own_keys.get(shortcut.key, shortcut.key))
        for shortcut in SHORTCUTS
    ]


def group_shortcuts(
    own_keys: Mapping[str, str],
) -> list[tuple[str, list[PersonalShortcut]]]:
    """The shortcuts grouped by where they work, in the order of the table."""
    groups = groupby(
        list_shortcuts(own_keys), key=lambda personal: personal.shortcut.where
    )
    return [(where, list(members)) for where, members in groups]


def list_key_problems(own_keys: Mapping[str, str]) -> dict[str, str]:
    """What is wrong with a person's own keys: a sentence for each default key. Two
    actions may not share a key, even on different pages."""
    problems: dict[str, str] = {}
    owner: dict[str, Shortcut] = {}
    for personal in list_shortcuts(own_keys):
        if problem := _describe_bad_key(personal):
            problems[personal.shortcut.key] = problem
        elif (
            other := owner.setdefault(personal.key, personal.shortcut)
        ) is not personal.shortcut:
            problems[personal.shortcut.key] = _describe_collision(
                personal.key, personal.shortcut, other
            )
    return problems


def _describe_bad_key(personal: PersonalShortcut) -> str:
    if personal.shortcut.fixed or personal.key == personal.shortcut.key:
        return ""
    last = personal.last
    if len(last) != 1 or not last.isprintable():
        return f"“{personal.shortcut.does}” needs one printable character."
    if last in RESERVED_KEYS and not personal.key.startswith(CHORD_PREFIX):
        action = personal.shortcut.does
        return f"{format_key(last)} is reserved. Choose another key for “{action}”."
    return ""


def _describe_collision(key: str, shortcut: Shortcut, other: Shortcut) -> str:
    return (
        f"{format_key(key)} is assigned to both “{other.does}” and “{shortcut.does}”."
    )


def list_changed_keys(own_keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (default key, own key) for each changeable action with a different key."""
    for personal in list_shortcuts(own_keys):
        if not personal.shortcut.fixed and personal.key != personal.shortcut.key:
            yield personal.shortcut.key, personal.key
