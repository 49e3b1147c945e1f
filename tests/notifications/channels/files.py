"""A channel that is added by adding a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from notifications import channels
from notifications.channels import registry

# It writes each message to a file, or refuses it in the words of `refuses`.
PAGER = '''
"""Messages to the pagers of a control room."""

from datetime import timedelta
from pathlib import Path

from notifications.channels.contract import Channel, DeliveryError

HERE = Path(__file__).parent


class PagerChannel(Channel):
    name = "pager"
    title = "Pager"

    def is_configured(self):
        return True

    def dispatch(self, message):
        if (HERE / "refuses").exists():
            words, _, seconds = (HERE / "refuses").read_text().partition("|")
            wait = timedelta(seconds=int(seconds)) if seconds else None
            raise DeliveryError(words, retry_after=wait, final=not seconds)
        (line,) = message.lines
        with (HERE / "paged").open("a") as file:
            file.write(f"{message.target} {line.kind} {line.about.pk}\\n")
        return f"page-{message.key}"


CHANNEL = PagerChannel()
'''


@contextmanager
def added_channel(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The file lies in the folder of the channels."""
    (folder / "pager.py").write_text(PAGER)
    patch.setattr(channels, "__path__", [*channels.__path__, str(folder)])
    registry.load_channels.cache_clear()
    yield
    registry.load_channels.cache_clear()
    sys.modules.pop(f"{channels.__name__}.pager", None)
