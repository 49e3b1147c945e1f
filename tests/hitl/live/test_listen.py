"""The hub on a real connection: LISTEN here, NOTIFY from another session."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from hitl.live.listen import Hub, Subscription
from journal.notify import CHANNEL
from tests import loops

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]

WITHIN_S = 15


def address() -> str:
    name = str(connection.settings_dict["NAME"])
    return (
        urlsplit(settings.COUNTERSEAL.database_url)._replace(path=f"/{name}").geturl()
    )


def run(story: Callable[[Hub, psycopg.AsyncConnection], Awaitable[None]]) -> None:
    """Play a story with a hub that listens and another session that speaks."""

    url = address()

    async def play() -> None:
        hub = Hub(url)
        await listening(hub)
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as other:
            await story(hub, other)
        await hub.stop()

    loops.run(play())


async def listening(hub: Hub) -> None:
    """Start it; it wakes everybody when its connection stands."""
    with hub.subscribe() as subscription:
        hub.start()
        await asyncio.wait_for(subscription.wait(), WITHIN_S)


async def hubs(other: psycopg.AsyncConnection) -> object:
    """How many connections listen in this database (the live web's is another)."""
    found = await other.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name = 'counterseal hub'"
    )
    return await found.fetchone()


async def notify(other: psycopg.AsyncConnection, subject: str) -> None:
    await other.execute("SELECT pg_notify(%s, %s)", [CHANNEL, subject])


async def quiet(subscription: Subscription) -> bool:
    try:
        await asyncio.wait_for(subscription.wait(), 0.3)
    except TimeoutError:
        return True
    return False


def test_news_of_its_subject_wakes_and_other_news_does_not() -> None:
    async def story(hub: Hub, other: psycopg.AsyncConnection) -> None:
        with hub.subscribe() as subscription:
            subscription.narrow("p-1")
            await notify(other, "p-2")
            assert await quiet(subscription)
            await notify(other, "p-1")
            await asyncio.wait_for(subscription.wait(), WITHIN_S)

    run(story)


def test_news_before_the_subject_was_known_is_not_lost() -> None:
    async def story(hub: Hub, other: psycopg.AsyncConnection) -> None:
        with hub.subscribe() as mine, hub.subscribe() as yours:
            with hub.subscribe() as another:
                another.narrow("p-1")
                await notify(other, "p-1")
                await asyncio.wait_for(another.wait(), WITHIN_S)
            mine.narrow("p-1")
            yours.narrow("p-2")
            await asyncio.wait_for(mine.wait(), WITHIN_S)
            assert await quiet(yours)

    run(story)


def test_one_wake_up_is_one_wait() -> None:
    async def story(hub: Hub, other: psycopg.AsyncConnection) -> None:
        with hub.subscribe() as subscription:
            subscription.narrow("p-1")
            await notify(other, "p-1")
            await asyncio.wait_for(subscription.wait(), WITHIN_S)
            assert await quiet(subscription)

    run(story)


def test_a_lost_connection_comes_back_and_wakes_everybody() -> None:
    async def story(hub: Hub, other: psycopg.AsyncConnection) -> None:
        with hub.subscribe() as subscription:
            subscription.narrow("p-1")
            await other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'counterseal hub' "
                "AND datname = current_database()"
            )
            await asyncio.wait_for(subscription.wait(), WITHIN_S)
            await notify(other, "p-1")
            await asyncio.wait_for(subscription.wait(), WITHIN_S)

    run(story)


def test_all_who_wait_share_one_connection() -> None:
    async def story(hub: Hub, other: psycopg.AsyncConnection) -> None:
        before = await hubs(other)
        with contextlib.ExitStack() as stack:
            for number in range(50):
                stack.enter_context(hub.subscribe()).narrow(f"p-{number}")
            assert await hubs(other) == before

    run(story)


def test_a_stopping_hub_lets_everybody_go() -> None:
    async def story(hub: Hub, other: psycopg.AsyncConnection) -> None:
        with hub.subscribe() as subscription:
            subscription.narrow("p-1")
            hub.end_waits()
            await asyncio.wait_for(subscription.wait(), WITHIN_S)
            assert hub.stopping

    run(story)


def test_an_unreachable_database_is_tried_again_without_an_end() -> None:
    async def story() -> None:
        hub = Hub("postgresql://nobody@127.0.0.1:1/none")
        hub.start()
        with hub.subscribe() as subscription:
            assert await quiet(subscription)
        await hub.stop()

    loops.run(story())


def test_one_subscription_waits_for_several_subjects() -> None:
    async def story(hub: Hub, other: psycopg.AsyncConnection) -> None:
        with hub.subscribe() as subscription:
            await notify(other, "agent:riley")
            await asyncio.wait_for(heard(subscription), WITHIN_S)
            subscription.narrow("p-1", "agent:riley")
            await asyncio.wait_for(subscription.wait(), WITHIN_S)
            assert await quiet(subscription)
            await notify(other, "p-1")
            await asyncio.wait_for(subscription.wait(), WITHIN_S)

    run(story)


async def heard(subscription: Subscription) -> None:
    while not subscription._heard:
        await asyncio.sleep(0.002)
