"""A process with another key than the database's does not start."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

from journal import clock, known_keys
from journal.models import KnownKey

pytestmark = pytest.mark.django_db
FORMER, NEW, OTHER = (bytes([number]) * 32 for number in (1, 2, 3))
EACH = pytest.mark.parametrize(
    "name", ["data_key", "tag_key", "grant_key", "secret_key"]
)
OTHERS = {"secret_key": "secret_key_fallbacks"}


@pytest.fixture
def use(settings: Any) -> Any:
    def start(name: str, key: bytes, *retired: bytes) -> list[str]:
        others = OTHERS.get(name, f"{name.replace('_key', '_keys')}_retired")
        read = bytes.decode if name == "secret_key" else bytes
        lists = {name: read(key), others: [read(former) for former in retired]}
        settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=lists)
        return known_keys.check_keys()

    return start


@EACH
def test_another_key_is_refused_and_changes_nothing(use: Any, name: str) -> None:
    assert use(name, FORMER) == use(name, FORMER) == []
    rows = list(KnownKey.objects.values_list())
    with pytest.raises(ImproperlyConfigured) as refused:
        use(name, OTHER)
    text = str(refused.value)
    variable = name.upper()
    assert text.startswith(f"{variable}: this installation uses the key ")
    assert known_keys.format_id(FORMER) in text
    assert known_keys.format_id(OTHER) in text
    others = OTHERS.get(name, f"{name}s_retired").upper()
    assert f"former key into {others}" in text
    accepts = f"`counterseal keys accept {variable}`" in text
    assert accepts == (variable in known_keys.SIGNING)
    assert list(KnownKey.objects.values_list()) == rows


@EACH
def test_a_turn_goes_host_by_host(use: Any, name: str) -> None:
    """First every host can read by the new key, then each one begins to use it."""
    use(name, FORMER)
    use(name, FORMER, NEW)
    use(name, NEW, FORMER)
    use(name, FORMER, NEW)  # a host that has not turned yet, and starts again
    use(name, NEW, FORMER)
    with pytest.raises(ImproperlyConfigured):  # a host that was forgotten
        use(name, FORMER)
    with pytest.raises(ImproperlyConfigured):
        use(name, OTHER)


def test_a_former_key_that_is_gone_too_early_is_said(use: Any) -> None:
    use("data_key", FORMER)
    use("data_key", NEW, FORMER)
    (line,) = use("data_key", NEW)
    assert known_keys.format_id(FORMER) in line
    assert "`counterseal keys rotate`" in line
    known_keys.forget_key("DATA_KEY", known_keys.format_id(FORMER))
    known_keys.forget_key("DATA_KEY", known_keys.format_id(NEW))  # it is in use
    assert use("data_key", NEW) == []
    with pytest.raises(ImproperlyConfigured):
        use("data_key", FORMER)


def test_a_key_that_goes_back_is_present_again(use: Any) -> None:
    use("data_key", FORMER)
    use("data_key", NEW, FORMER)
    use("data_key", FORMER, NEW)
    known_keys.confirm_keys()  # `keys rotate` does
    known_keys.forget_key("DATA_KEY", known_keys.format_id(NEW))
    assert use("data_key", FORMER) == []
    with pytest.raises(ImproperlyConfigured):
        use("data_key", NEW)


@pytest.mark.parametrize("name", ["grant_key", "secret_key"])
def test_a_key_that_leaked_is_replaced_without_it(use: Any, name: str) -> None:
    use(name, FORMER)
    with pytest.raises(ImproperlyConfigured):
        use(name, NEW)
    call_command("accept_key", name.upper(), stdout=StringIO())
    assert use(name, NEW) == []
    with pytest.raises(ImproperlyConfigured):  # a host that has the one that leaked
        use(name, FORMER)


def test_the_key_of_a_time_is_the_one_that_was_used_then(use: Any) -> None:
    before = clock.now()
    assert known_keys.find_key_at("TAG_KEY", before) is None
    use("tag_key", FORMER)
    use("tag_key", NEW, FORMER)
    (_, first), (_, second) = known_keys.list_uses("TAG_KEY")
    former, new = known_keys.format_id(FORMER), known_keys.format_id(NEW)
    moments = [before, first, second, clock.now()]
    used = [known_keys.find_key_at("TAG_KEY", moment) for moment in moments]
    assert used == [former, former, new, new]
