"""An authenticator app and recovery codes: each code once, wrong ones counted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from journal.errors import Conflict, NotPermitted
from journal.models import LogRecord
from policies import second_factors
from policies.models import RecoveryCode, TotpDevice
from tests.conftest import Gate
from tests.policies.authenticator import App, enrol

pytestmark = pytest.mark.django_db


def use(app: App, code: str, recovery: bool = False) -> bool:
    return second_factors.use_code(app.person, code, recovery=recovery)


def test_an_app_counts_after_its_first_code(gate: Gate) -> None:
    app = App(gate.rita)
    with pytest.raises(Conflict, match="No authenticator app"):
        second_factors.confirm_enrolment(gate.rita, "000000")
    second_factors.begin_enrolment(gate.rita)
    app.secret = second_factors.find_pending_secret(gate.rita)
    assert app.secret not in str(list(TotpDevice.objects.values()))
    second_factors.begin_enrolment(gate.rita)  # another secret replaces it
    old, app.secret = app.secret, second_factors.find_pending_secret(gate.rita)
    assert old != app.secret
    assert second_factors.confirm_enrolment(gate.rita, app.wrong()) is None
    assert not second_factors.has_second_factor(gate.rita)
    assert not use(app, app.show())  # not yet
    codes = second_factors.confirm_enrolment(gate.rita, f" {app.show()} ")
    assert codes is not None
    assert len(set(codes)) == second_factors.count_recovery_codes(gate.rita) == 10
    assert second_factors.has_second_factor(gate.rita)
    assert second_factors.find_pending_secret(gate.rita) == ""
    with pytest.raises(Conflict, match="already"):
        second_factors.begin_enrolment(gate.rita)
    kept = str(list(RecoveryCode.objects.values()))
    assert not any(code.replace("-", "") in kept for code in codes)
    assert LogRecord.objects.filter(kind="person.factor_added").count() == 1


def test_a_secret_is_shown_for_a_quarter_of_an_hour(gate: Gate) -> None:
    second_factors.begin_enrolment(gate.rita)
    late = F("created_at") - second_factors.SHOWN_FOR - timedelta(seconds=1)
    TotpDevice.objects.update(created_at=late)
    assert second_factors.find_pending_secret(gate.rita) == ""
    with pytest.raises(Conflict, match="No authenticator app"):
        second_factors.confirm_enrolment(gate.rita, "000000")


def test_a_code_works_once_and_near_its_time(gate: Gate) -> None:
    app, _ = enrol(gate.rita)
    assert not use(app, app.show(-3))
    assert not use(app, app.show(3))
    code = app.show()
    assert use(app, code)
    assert not use(app, code)
    assert not use(app, app.show(-1))  # none before it, either
    assert not second_factors.use_code(gate.sue, app.show(), recovery=True)


def test_a_recovery_code_works_once_and_at_sign_in_alone(gate: Gate) -> None:
    app, codes = enrol(gate.rita)
    assert not use(app, codes[0])
    assert use(app, codes[0].upper(), recovery=True)
    assert not use(app, codes[0], recovery=True)
    assert second_factors.count_recovery_codes(gate.rita) == 9
    renewed = second_factors.renew_recovery_codes(gate.rita)
    assert not use(app, codes[1], recovery=True)
    assert use(app, renewed[1].replace("-", ""), recovery=True)
    with pytest.raises(Conflict):
        second_factors.renew_recovery_codes(gate.sue)


def test_ten_wrong_codes_end_all_tries_for_a_while(gate: Gate) -> None:
    app, codes = enrol(gate.rita)
    assert not any(use(app, app.wrong()) for _ in range(9))
    assert use(app, app.show())  # a right one starts the count again
    app.forget()
    assert not any(use(app, app.wrong(), recovery=True) for _ in range(10))
    assert not use(app, app.show())
    assert not use(app, codes[0], recovery=True)
    app.rest()
    assert use(app, app.show())


def test_an_administrator_at_a_shell_removes_a_lost_one(gate: Gate) -> None:
    app, codes = enrol(gate.rita)
    with pytest.raises(NotPermitted):
        second_factors.remove_lost_factor(gate.rita, by=gate.sue)
    second_factors.remove_lost_factor(gate.rita, by=gate.adam)
    assert not second_factors.has_second_factor(gate.rita)
    assert not use(app, codes[0], recovery=True)
    with pytest.raises(Conflict, match="no second factor"):
        second_factors.remove_lost_factor(gate.rita, by=gate.adam)
    record = LogRecord.objects.get(kind="person.factor_removed")
    assert gate.adam.public_id in bytes(record.leaf).decode()
