"""A person signed in, for what a token does not suffice for: pages, and verdicts with a
fresh password. Cookies are kept by hand: a library's jar would not send `Secure` ones
to plain http, where browsers trust loopback."""

from __future__ import annotations

from http.cookies import SimpleCookie
from typing import Any

import httpx

from bench.seed import PASSWORD


class Session:
    """One person's browser, so to say. Raises httpx.HTTPError like its library."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cookies: dict[str, str] = {}
        self._http = httpx.Client(trust_env=False, timeout=15)

    def get(self, address: str, path: str) -> httpx.Response:
        return self._send("GET", address, path)

    def post(self, address: str, path: str, **said: Any) -> httpx.Response:
        """A form, or JSON with `json=`; signed in first where that is needed."""
        if not self._is_in:
            self._sign_in(address)
        return self._send("POST", address, path, **said)

    def leave(self) -> None:
        """The next form begins with a sign-in."""
        self.cookies.clear()

    @property
    def _is_in(self) -> bool:
        return any(name.endswith("session") for name in self.cookies)

    def _sign_in(self, address: str) -> None:
        self.get(address, "/sign-in/")
        said = {"username": self.name, "password": PASSWORD}
        self._send("POST", address, "/sign-in/", data=said)

    def _send(
        self, method: str, address: str, path: str, **said: Any
    ) -> httpx.Response:
        sent = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": sent, "X-CSRFToken": self._token}
        answer = self._http.request(method, address + path, headers=headers, **said)
        for line in answer.headers.get_list("set-cookie"):
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
        self._http.cookies.clear()
        return answer

    @property
    def _token(self) -> str:
        found = (v for name, v in self.cookies.items() if name.endswith("csrf"))
        return next(found, "")
