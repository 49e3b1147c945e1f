from __future__ import annotations

from journal import bearer_tokens


def test_what_is_minted_splits_and_matches():
    minted = bearer_tokens.create_token("cs")
    prefix, secret = bearer_tokens.parse_token("cs", minted.text)
    assert prefix == minted.prefix
    assert bearer_tokens.is_matching_secret(minted.digest, secret)
    assert secret not in minted.digest


def test_another_mark_finds_nothing():
    assert bearer_tokens.parse_token("cs", bearer_tokens.create_token("csp").text) == (
        "",
        "",
    )


def test_another_secret_does_not_match():
    assert not bearer_tokens.is_matching_secret(
        bearer_tokens.create_token("cs").digest, "x" * 32
    )
    assert not bearer_tokens.is_matching_secret(
        bearer_tokens.create_token("cs").digest, ""
    )


def test_no_two_are_alike():
    assert len({bearer_tokens.create_token("cs").text for _ in range(100)}) == 100
