"""The store's own no: nothing happened, and here is why."""

from __future__ import annotations


class Refusal(Exception):
    """An effect that the store's rules forbid. `code` is stable, `detail` for people.

    Whoever raises it has written nothing, and the caller rolls back all the same.
    """

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        self.detail = detail
        super().__init__(f"{code}: {detail}")
