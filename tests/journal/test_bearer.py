from __future__ import annotations

from journal import bearer


def test_what_is_minted_splits_and_matches():
    minted = bearer.mint("hp")
    prefix, secret = bearer.split("hp", minted.text)
    assert prefix == minted.prefix
    assert bearer.matches(minted.digest, secret)
    assert secret not in minted.digest


def test_another_mark_finds_nothing():
    assert bearer.split("hp", bearer.mint("hpp").text) == ("", "")


def test_another_secret_does_not_match():
    assert not bearer.matches(bearer.mint("hp").digest, "x" * 32)
    assert not bearer.matches(bearer.mint("hp").digest, "")


def test_no_two_are_alike():
    assert len({bearer.mint("hp").text for _ in range(100)}) == 100
