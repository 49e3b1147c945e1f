"""Django settings of the store: routing and escaped templates, without ORM, sessions
and accounts. The environment names the port, the folder of the database and the secret
with which Counterseal signs its calls."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from csp.constants import NONE, SELF

PORT = int(os.environ.get("STORE_PORT", "8010"))
DATABASE = Path(os.environ.get("STATE", "var")).resolve() / "store.sqlite3"
WEBHOOK_SECRET = os.environ.get("COUNTERSEAL_WEBHOOK_SECRET", "")

SECRET_KEY = secrets.token_urlsafe(32)  # Django requires one; the store signs nothing
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
ROOT_URLCONF = "demo.store.urls"
INSTALLED_APPS: list[str] = []
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.common.CommonMiddleware",  # refuses a foreign host name
]
SECURE_REFERRER_POLICY = "no-referrer"
CONTENT_SECURITY_POLICY = {  # pages load one stylesheet and nothing else
    "DIRECTIVES": {
        "default-src": [NONE],
        "style-src": [SELF],
        "form-action": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
DATABASES: dict[str, dict[str, str]] = {}
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "templates"],
        "OPTIONS": {"builtins": ["demo.store.filters"]},
    }
]
APPEND_SLASH = False
USE_I18N = False
TIME_ZONE = "UTC"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
LOGGING_CONFIG = None
