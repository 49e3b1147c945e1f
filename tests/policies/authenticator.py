"""An authenticator app, as a person holds it."""

from __future__ import annotations

import base64
from datetime import timedelta

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from journal import clock
from policies import second_factors
from policies.models import Person, TotpDevice


class App:
    """The app of one person. Times move instead of the clock: `show` makes the code of
    the time step that is `shift` later, and `forget` lets a code of now work again."""

    def __init__(self, person: Person) -> None:
        self.person = person

    def show(self, shift: int = 0) -> str:
        secret = base64.b32decode(self.secret.replace(" ", ""))
        totp = TOTP(secret, 6, SHA1(), 30)
        return totp.generate(int(clock.now().timestamp()) + shift * 30).decode()

    def wrong(self) -> str:
        """Six digits that no time step around this one has."""
        near = {self.show(shift) for shift in range(-3, 4)}
        return next(f"{n:06}" for n in range(10) if f"{n:06}" not in near)

    def forget(self) -> None:
        TotpDevice.objects.filter(person=self.person).update(last_step=0)

    def rest(self) -> None:
        earlier = clock.now() - second_factors.COOL_OFF - timedelta(seconds=1)
        TotpDevice.objects.filter(person=self.person).update(attempted_at=earlier)

    secret = ""


def enrol(person: Person) -> tuple[App, list[str]]:
    """The app of a person who needs it from now on, and their recovery codes."""
    app = App(person)
    second_factors.begin_enrolment(person)
    app.secret = second_factors.find_pending_secret(person)
    codes = second_factors.confirm_enrolment(person, app.show())
    assert codes is not None
    app.forget()
    return app, list(codes)
