"""Sealed values open with their key and place only, and never in part."""

from __future__ import annotations

from typing import Any

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


def test_a_former_key_still_reads_and_seals_nothing_new(settings: Any) -> None:
    content, place = {"vote": 1}, b"thread 7"
    stored, seal = (
        encryption.encrypt_stored(b"state", place),
        encryption.seal_content(content),
    )
    former, new = settings.COUNTERSEAL.data_key, encryption.create_key()
    changed = {"data_key": new, "data_keys_retired": [former]}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    assert encryption.decrypt_stored(stored, place) == b"state"
    assert encryption.is_sealed(content, seal)
    assert encryption.seal_content(content) != seal
    assert encryption.encrypt_stored(b"", place)[1:9] == encryption.identify_key(new)


def test_a_key_that_nobody_has_is_refused_with_the_repair(settings: Any) -> None:
    stored = encryption.encrypt_stored(b"state", b"thread 7")
    changed = {"data_key": encryption.create_key()}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    with pytest.raises(
        encryption.DecryptionError, match="to DATA_KEYS_RETIRED"
    ) as said:
        encryption.decrypt_stored(stored, b"thread 7")
    assert (said.value.code, said.value.status) == ("unreadable", 503)
