"""Passkeys: an answer is for one purpose, from one origin, and works once."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from journal import clock
from journal.errors import Conflict, InvalidInput
from journal.models import LogRecord
from policies import passkeys, second_factors
from policies.models import Passkey, Person
from tests.conftest import Gate
from tests.policies.authenticator import enrol
from tests.policies.security_key import PRESENT, SecurityKey, give_key

pytestmark = pytest.mark.django_db
PURPOSE = "verdict of this request"


def ask(person: Person, purpose: str = PURPOSE) -> dict[str, Any]:
    return passkeys.build_request_options(purpose, person, verified=True)


def use(held: SecurityKey, answer: str, purpose: str = PURPOSE) -> bool:
    return passkeys.use_passkey(held.person, answer, purpose, verified=True)


def test_an_answer_works_once_and_for_its_purpose(gate: Gate) -> None:
    held, codes = give_key(gate.rita)
    assert len(codes) == 10
    assert second_factors.has_second_factor(gate.rita)
    earlier, later = ask(gate.rita), ask(gate.rita)
    answer = held.sign(later)
    assert not use(held, answer, "verdict of another request")
    assert use(held, answer)
    assert not use(held, answer)
    assert not use(held, held.sign(earlier))  # none before it works afterwards
    other, more = give_key(gate.rita)
    assert not more  # the codes of before stand
    assert not use(other, other.sign(later))  # nor with another key of the person
    assert use(other, other.sign(ask(gate.rita)))
    assert not passkeys.use_passkey(
        gate.sue, held.sign(ask(gate.rita)), PURPOSE, verified=True
    )


def test_an_answer_from_elsewhere_is_none(gate: Gate, monkeypatch: Any) -> None:
    held, _ = give_key(gate.rita)
    for origin in ("https://evil.example", f"{held.origin}.evil.example"):
        held.origin, right = origin, held.origin
        assert not use(held, held.sign(ask(gate.rita)))
        with pytest.raises(InvalidInput):
            passkeys.add_passkey(
                gate.rita, "Key", held.make(passkeys.build_creation_options(gate.rita))
            )
        held.origin = right
    assert not use(held, held.sign({**ask(gate.rita), "rpId": "evil.example"}))
    assert not use(held, held.sign(ask(gate.rita), PRESENT))  # nobody was verified
    stranger = SecurityKey(gate.rita)
    stranger.id = held.id
    assert not use(held, stranger.sign(ask(gate.rita)))  # another private key
    options = ask(gate.rita)
    late = clock.now() + passkeys.CHALLENGE_LIFETIME + timedelta(seconds=1)
    monkeypatch.setattr(clock, "now", lambda: late)
    assert not use(held, held.sign(options))


@pytest.mark.parametrize(
    "answer",
    ["", "[", "[]", "{}", "1", '{"rawId": 1}', "[" * 15_000, "x" * 20_000],
)
def test_garbage_is_no_answer(gate: Gate, answer: str) -> None:
    held, _ = give_key(gate.rita)
    assert not use(held, answer)
    assert passkeys.find_owner(answer) is None
    with pytest.raises(InvalidInput):
        passkeys.add_passkey(gate.rita, "Key", answer)
    plain = json.loads(held.sign(ask(gate.rita)))
    plain["response"]["authenticatorData"] = "AAAA"
    assert not use(held, json.dumps(plain))


def test_a_key_that_counts_backwards_may_be_a_copy(gate: Gate) -> None:
    held, _ = give_key(gate.rita, 7)
    assert use(held, held.sign(ask(gate.rita)))
    held.count = 3
    assert not use(held, held.sign(ask(gate.rita)))
    held.count = None  # one that counts does not stop to
    assert not use(held, held.sign(ask(gate.rita)))
    assert LogRecord.objects.filter(kind="person.passkey_refused").count() == 2
    quiet, _ = give_key(gate.sue, None)
    assert use(quiet, quiet.sign(ask(gate.sue)))
    assert use(quiet, quiet.sign(ask(gate.sue)))


def test_a_key_is_added_once_and_codes_go_with_the_last_factor(gate: Gate) -> None:
    held, _ = give_key(gate.rita)
    with pytest.raises(Conflict):
        passkeys.add_passkey(
            gate.rita, "Again", held.make(passkeys.build_creation_options(gate.rita))
        )
    foreign = SecurityKey(gate.sue)
    with pytest.raises(InvalidInput):  # made for somebody else
        passkeys.add_passkey(
            gate.sue, "Key", foreign.make(passkeys.build_creation_options(gate.rita))
        )
    enrol(gate.rita)
    row = Passkey.objects.get()
    with pytest.raises(Conflict):
        passkeys.remove_own_passkey(gate.sue, row.pk)
    passkeys.remove_own_passkey(gate.rita, row.pk)
    assert second_factors.count_recovery_codes(gate.rita) == 10
    give_key(gate.rita)
    second_factors.remove_own_app(gate.rita)
    assert second_factors.count_recovery_codes(gate.rita) == 10
    second_factors.remove_lost_factor(gate.rita, by=gate.adam)
    assert not second_factors.has_second_factor(gate.rita)
    assert not second_factors.count_recovery_codes(gate.rita)


def test_a_name_is_needed_for_passkeys(settings: Any) -> None:
    offered = []
    for address in (
        "https://gate.example.org",
        "http://localhost:8000",
        "http://gate.example.org",
        "https://127.0.0.1",
        "http://[::1]:8000",
    ):
        changed = {"base_url": address}
        settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
        offered.append((passkeys.is_offered(), passkeys.find_localhost()))
    assert offered == [
        (True, ""),
        (True, ""),
        (False, ""),
        (False, "https://localhost"),
        (False, "http://localhost:8000"),
    ]
