"""The settings in force: where each came from, and no secret."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings as django_settings
from pytest_django import Settings

from hitl.environment import Counterseal
from hitl.health.settings_table import SettingLine, list_settings


def find(name: str, **environ: str) -> SettingLine:
    (line,) = (line for line in list_settings(environ) if line.name == name)
    return line


def test_each_setting_says_where_it_came_from(
    settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "data_key").write_text("-")
    changed = {"state": tmp_path, "sms_api_url": "https://u:pw@sms.example"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    assert find("DATA_KEY") == SettingLine("DATA_KEY", "set", "file", True)
    assert find("HTTP_TIMEOUT").source == "default"
    assert find("HTTP_TIMEOUT", http_timeout="10").source == "environment"
    assert find("SMS_API_URL").value == "https://…@sms.example"
    assert find("COUNTERSEAL_CALLABLES", COUNTERSEAL_CALLABLES="").source != "default"


def test_no_secret_is_among_the_values() -> None:
    lines = list_settings()
    assert len(lines) == len(Counterseal.model_fields)
    hidden = [line for line in lines if line.is_secret]
    assert {"DATABASE_URL", "SECRET_KEY", "OIDC_CLIENT_SECRET"} <= {
        line.name for line in hidden
    }
    assert {line.value.split()[-1] for line in hidden} == {"set"}
    shown = " ".join(line.value for line in lines)
    assert django_settings.SECRET_KEY not in shown
