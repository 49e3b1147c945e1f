"""Finds the channels: every module of this folder that sets `CHANNEL`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from .. import channels
from .contract import Channel, DeliveryError


@cache
def load_channels() -> Mapping[str, Channel]:
    """All channels by name. Raises ValueError when two have the same name."""
    by_name: dict[str, Channel] = {}
    for module in pkgutil.iter_modules(channels.__path__):
        named = import_module(f"{channels.__name__}.{module.name}")
        channel = getattr(named, "CHANNEL", None)
        if not isinstance(channel, Channel):
            continue
        if channel.name in by_name:
            raise ValueError(f"two modules define the channel {channel.name}")
        by_name[channel.name] = channel
    return by_name


def find_channel(name: str) -> Channel:
    """The channel of this name. Raises DeliveryError where there is none, or where the
    settings lack what it needs."""
    channel = load_channels().get(name)
    if channel is None:
        raise DeliveryError(f"there is no channel {name}", final=True)
    if not channel.is_configured():
        raise DeliveryError(f"{channel.title} is not set up on this installation")
    return channel


def list_personal_channels() -> list[Channel]:
    """The channels to one person that this installation can use, mail first."""
    usable = [
        channel
        for channel in load_channels().values()
        if channel.is_personal and channel.is_configured()
    ]
    return sorted(usable, key=lambda channel: (channel.name != "email", channel.title))
