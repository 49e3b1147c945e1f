from __future__ import annotations

from journal import bearer_tokens


def test_what_is_minted_splits_and_matches():
    minted = bearer_tokens.create_token("hp")
    prefix, secret = bearer_tokens.parse_token("hp", minted.text)
    assert prefix == minted.prefix
    assert bearer_tokens.is_matching_secret(minted.digest, secret)
    assert secret not in minted.digest


def test_another_mark_finds_nothing():
    assert bearer_tokens.parse_token("hp", bearer_tokens.create_token("hpp").text) == (
        "",
        "",
    )


def test_another_secret_does_not_match():
    assert not bearer_tokens.is_matching_secret(
        bearer_tokens.create_token("hp").digest, "x" * 32
    )
    assert not bearer_tokens.is_matching_secret(
        bearer_tokens.create_token("hp").digest, ""
    )


def test_no_two_are_alike():
    assert len({bearer_tokens.create_token("hp").text for _ in range(100)}) == 100
