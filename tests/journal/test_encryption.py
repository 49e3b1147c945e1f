"""Sealed values open with their key and place only, and never in part."""

from __future__ import annotations

import pytest

from journal import encryption

KEY = bytes(range(32))


def test_what_was_sealed_opens():
    sealed = encryption.encrypt_value(KEY, b"state", b"thread 7")
    assert encryption.decrypt_value(KEY, sealed, b"thread 7") == b"state"
    assert encryption.decrypt_value(KEY, memoryview(sealed), b"thread 7") == b"state"


def test_sealing_twice_never_gives_the_same_bytes():
    assert encryption.encrypt_value(KEY, b"x", b"") != encryption.encrypt_value(
        KEY, b"x", b""
    )


def test_every_changed_bit_is_noticed():
    sealed = encryption.encrypt_value(KEY, b"state", b"a")
    for position in range(len(sealed) * 8):
        changed = bytearray(sealed)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises(encryption.DecryptionError):
            encryption.decrypt_value(KEY, bytes(changed), b"a")


def test_a_cut_value_is_noticed():
    sealed = encryption.encrypt_value(KEY, b"state", b"a")
    for length in range(len(sealed)):
        with pytest.raises(encryption.DecryptionError):
            encryption.decrypt_value(KEY, sealed[:length], b"a")


def test_another_place_or_key_does_not_open_it():
    sealed = encryption.encrypt_value(KEY, b"state", b"thread 7")
    with pytest.raises(encryption.DecryptionError, match="key and place"):
        encryption.decrypt_value(KEY, sealed, b"thread 8")
    with pytest.raises(encryption.DecryptionError, match="key and place"):
        encryption.decrypt_value(encryption.create_key(), sealed, b"thread 7")


def test_an_unknown_version_is_named():
    sealed = encryption.encrypt_value(KEY, b"state", b"")
    with pytest.raises(encryption.DecryptionError, match="version 9"):
        encryption.decrypt_value(KEY, b"\x09" + sealed[1:], b"")


def test_a_short_key_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="32 bytes"):
        encryption.encrypt_value(b"short", b"", b"")


def test_a_wrapped_key_opens_for_its_owner_only():
    key = encryption.create_key()
    wrapped = encryption.wrap_key(key, "a-1/order_7")
    assert key not in wrapped
    assert encryption.unwrap_key(wrapped, "a-1/order_7") == key
    with pytest.raises(encryption.DecryptionError):
        encryption.unwrap_key(wrapped, "a-1/order_8")
