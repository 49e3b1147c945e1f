"""What an adapter and its framework can do, in the same words for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

Resume = Literal["sdk", "http", "event"]


class UnsupportedVersion(ImportError):
    """The installed framework is older than the first release that the adapter is
    tested with, and known to let calls past an approval."""


@dataclass(frozen=True, slots=True)
class AdapterFlags:
    """What a reviewer, or a program that answers for one, may expect.

    `supports_edit`: an edited call runs with the edited arguments. `supports_respond`:
    a reviewer may answer in place of the tool. `partial_ok`: one of several parallel
    calls can go on before the others are decided. `positional`: the framework takes
    answers by position, so the adapter counts them first. `needs_reason`: a rejection
    without a text is not passed on. `model_reads_answer`: a model sees the reviewer's
    words. `held_open`: something of the agent waits while people decide.
    `binds_request`: the framework itself refuses an answer to another request.
    """

    framework: str
    minimum: str
    supports_edit: bool = True
    supports_respond: bool = False
    partial_ok: bool = True
    positional: bool = False
    needs_reason: bool = True
    model_reads_answer: bool = True
    held_open: bool = False
    binds_request: bool = True
    resume: Resume = "sdk"

    def check_version(self, why: str) -> None:
        """Raise UnsupportedVersion for a framework older than `minimum`. `why` says
        what older releases let through."""
        found = version(self.framework)
        if _parse_version(found) < _parse_version(self.minimum):
            raise UnsupportedVersion(
                f"{self.framework} {found} is not supported: {why} Install"
                f" {self.framework}>={self.minimum}."
            )


def _parse_version(text: str) -> tuple[int, ...]:
    """The numbers of a release; what follows them does not count."""
    numbers = []
    for part in text.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
