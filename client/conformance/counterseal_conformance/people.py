"""The people of the kit: a reviewer with a personal token, and a person with a browser
session, who fills in the forms of the gate's own pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Self
from urllib.parse import urljoin

import httpx2

from .catalogue import CheckFailed, expect

TIMEOUT = 30.0  # seconds


class Reviewer:
    """A person's program at the people's API."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx2.Client(
            base_url=f"{url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            trust_env=False,
            timeout=TIMEOUT,
        )

    def close(self) -> None:
        self._http.close()

    def list_requests(
        self, agent: str, thread: str, status: str = "pending"
    ) -> list[dict[str, Any]]:
        """What waits in this run, or is in another status."""
        rows = self.list_agent_requests(agent, status)
        return [row for row in rows if row["thread"] == thread]

    def list_agent_requests(
        self, agent: str, status: str = "pending"
    ) -> list[dict[str, Any]]:
        """The requests of this agent that wait, or that are in another status."""
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            given = {"agent": agent, "status": status, "cursor": cursor}
            page = self._http.get("/requests", params=given).raise_for_status().json()
            found += page["items"]
            cursor = page["next_cursor"] or ""
            if not cursor:
                return found

    def check_token(self) -> int:
        """The status of a call with this person's token."""
        return self._http.get("/requests").status_code

    def read_request(self, request: str) -> dict[str, Any]:
        answer = self._http.get(f"/requests/{request}").raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def decide(
        self, request: str, verdict: str, reason: str = "", args: Any = None
    ) -> httpx2.Response:
        """Give a verdict on what the request shows now."""
        shown = self.read_request(request)
        code = {"approve": "verified", "reject": "not_needed"}.get(verdict, "other")
        body = {
            "version": shown["version"],
            "action_hash": shown["action_hash"],
            "reading": shown["reading"],
            "verdict": verdict,
            "reason_code": code,
            "reason": reason or ("Changed." if code == "other" else ""),
            **({"args": args} if args is not None else {}),
        }
        return self._http.post(f"/requests/{request}/decide", json=body)


@dataclass(slots=True)
class Form:
    """A form of a page: where it goes, and its fields with their first values."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


class FormParser(HTMLParser):
    """Reads the forms of a page, as a browser without JavaScript has them."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect forms and their fields."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            method = given.get("method", "get").lower()
            self.forms.append(Form(given.get("action", ""), method))
        elif self.forms and "disabled" not in given:
            self._add_field(tag, given)

    def _add_field(self, tag: str, given: Mapping[str, str]) -> None:
        fields, name = self.forms[-1].fields, given.get("name", "")
        if tag == "select":
            self._select = name
        elif tag == "option" and ("selected" in given or self._select not in fields):
            fields[self._select] = given.get("value", "")
        elif tag in ("input", "textarea") and name:
            optional = given.get("type") in ("radio", "checkbox")
            if "checked" in given or not optional:
                fields[name] = given.get("value", "on" if optional else "")


class Visitor:
    """A person with a session at the gate's pages."""

    def __init__(self, url: str) -> None:
        # The gate's cookies are Secure; like a browser, send them to this machine too.
        policy = DefaultCookiePolicy(secure_protocols=("https", "http"))
        self._http = httpx2.Client(
            base_url=url,
            cookies=CookieJar(policy),
            follow_redirects=True,
            trust_env=False,
            timeout=TIMEOUT,
        )
        self.text = ""
        self._at = url

    @classmethod
    def sign_in(cls, url: str, login: Mapping[str, str]) -> Self:
        """Sign in with a user name and password."""
        visitor = cls(url)
        visitor.open("/sign-in/")
        given = {"username": login["username"], "password": login["password"]}
        visitor.submit("username", given)
        expect("/sign-in/" not in visitor._at, "the gate did not take the password")
        return visitor

    def open(self, path: str) -> str:
        """Open a page and return its HTML."""
        return self._keep(self._http.get(path).raise_for_status())

    def submit(self, known: str, values: Mapping[str, str]) -> str:
        """Fill in the form that has a field of this name, and send it."""
        form = self._find_form(known)
        data = {**form.fields, **values}
        address = urljoin(self._at, form.action or self._at)
        headers = {"Referer": self._at}
        return self._keep(self._http.post(address, data=data, headers=headers))

    def _find_form(self, known: str) -> Form:
        parser = FormParser()
        parser.feed(self.text)
        for form in parser.forms:
            if form.method == "post" and known in form.fields:
                return form
        raise CheckFailed(f"the page {self._at} has no form with {known}")

    def _keep(self, response: httpx2.Response) -> str:
        self.text, self._at = response.text, str(response.url)
        return self.text
