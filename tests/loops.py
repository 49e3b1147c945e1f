"""Running coroutines in tests. In a thread of their own: once a browser test ran in
this process, Playwright's loop is running in the main one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T], *, within: float = 20) -> T:
    """The coroutine's result; TimeoutError after `within` seconds."""

    async def play() -> T:
        return await asyncio.wait_for(coroutine, within)

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, play()).result()
