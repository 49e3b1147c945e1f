"""Django for the store's pages: routing and escaped templates, nothing else.

No ORM (the store speaks SQLite itself), no sessions, no accounts.
"""

from __future__ import annotations

import secrets
from pathlib import Path

HERE = Path(__file__).resolve().parent

SECRET_KEY = secrets.token_urlsafe(32)  # nothing is signed; Django wants one
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
ROOT_URLCONF = "demo.store.urls"
INSTALLED_APPS: list[str] = []
MIDDLEWARE = ["demo.store.middleware.headers"]
DATABASES: dict[str, dict[str, str]] = {}
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [HERE / "templates"],
        "OPTIONS": {"autoescape": True},
    }
]
APPEND_SLASH = False
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
LOGGING_CONFIG = None
