"""Django's settings.

hitl/environment.py defines what a deployment may configure, read here as COUNTERSEAL.
Everything else is fixed, because the guarantees depend on it.
"""

from __future__ import annotations

from importlib.util import find_spec

from csp.constants import NONE, SELF

from notifications import events

from . import connections, environment, logs

COUNTERSEAL = environment.read_environment()
BASE_DIR = environment.ROOT

DEBUG = False
SECRET_KEY = COUNTERSEAL.secret_key
SECRET_KEY_FALLBACKS = COUNTERSEAL.secret_key_fallbacks
ALLOWED_HOSTS = [COUNTERSEAL.hostname, *COUNTERSEAL.allowed_hosts]
if COUNTERSEAL.loopback:
    ALLOWED_HOSTS += ["localhost", environment.LOOPBACK, "[::1]"]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "guardian",
    "axes",
    "csp",
    "django_htmx",
    # The loader is named in TEMPLATES; the app that would patch it in is not needed.
    "template_partials.apps.SimpleAppConfig",
    "journal.apps.JournalConfig",
    "policies.apps.PoliciesConfig",
    "reviews.apps.ReviewsConfig",
    "agents.apps.AgentsConfig",
    "desk",
    "hitl.apps.HitlConfig",
]
if COUNTERSEAL.local and find_spec("demo"):
    INSTALLED_APPS.append("demo")  # for `manage.py seed_demo` alone

# A program's call of the API passes those of hitl.page_middleware. Checks of Django and
# of axes look for theirs by name; neither does anything at a view of the API.
MIDDLEWARE = [
    "hitl.forwarding.ProxyHeaders",  # above what redirects to https
    "django.middleware.security.SecurityMiddleware",
    # Above what compresses pages: it has compressed the static files already.
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "hitl.page_middleware.Compression",
    "hitl.middleware.RequestContext",
    # Before any middleware that may answer early, so that its answers get the headers.
    "hitl.middleware.ContentPolicy",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "hitl.middleware.Boundary",
    # Before what reads a session or checks the host name.
    "hitl.middleware.ProbesByAddress",
    "hitl.page_middleware.Sessions",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "hitl.page_middleware.Authentication",
    "hitl.page_middleware.LoginRequired",
    "hitl.page_middleware.Zones",
    "hitl.page_middleware.Messages",
    "hitl.page_middleware.Htmx",
    "hitl.middleware.DomainErrors",
    # Last: it replaces the answer to a sign-in that is locked out.
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "hitl.urls"
WSGI_APPLICATION = None
ASGI_APPLICATION = "hitl.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "autoescape": True,
            "builtins": ["template_partials.templatetags.partials"],
            "loaders": [
                (
                    "template_partials.loader.Loader",
                    [
                        (
                            "django.template.loaders.cached.Loader",
                            [
                                "django.template.loaders.filesystem.Loader",
                                "django.template.loaders.app_directories.Loader",
                            ],
                        )
                    ],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "desk.components.frame.desk",
                "hitl.health.summary.add_summary",
            ],
        },
    }
]

# The database. An operation answers only after its own transaction has committed, which
# a transaction around the request would prevent; so hitl/connections.py sets
# ATOMIC_REQUESTS to False.
DATABASES = {
    "default": connections.build_database_config(
        COUNTERSEAL.database_url, application_name="counterseal"
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Messages carry ids; the database holds the state (docs/invariants.md I25).
CELERY_BROKER_URL = connections.build_broker_url(COUNTERSEAL.redis_url)
CELERY_BROKER_TRANSPORT_OPTIONS = connections.build_transport_options(
    COUNTERSEAL.visibility_timeout
)
CELERY_BROKER_CONNECTION_TIMEOUT = connections.BROKER_CONNECT_TIMEOUT_S
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_QUEUES, CELERY_TASK_ROUTES = connections.QUEUES, connections.ROUTES
CELERY_TASK_DEFAULT_QUEUE = connections.SWEEPS
CELERY_TASK_PUBLISH_RETRY = False  # a lost nudge is covered by a sweep
CELERY_TASK_SERIALIZER = "json"
CELERY_RESULT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 2  # after SIGQUIT
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_SEND_TASK_EVENTS = False
# With it, anybody with write access to the broker could make workers stop consuming.
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_TASK_SOFT_TIME_LIMIT = COUNTERSEAL.soft_time_limit
CELERY_TASK_TIME_LIMIT = COUNTERSEAL.time_limit
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "hitl.celery:Sweeper"

# Topic -> the Celery tasks that handle it; each task gets an outbox row of its own.
OUTBOX_ROUTES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(events.EVENTS, events.CHANNEL_TASKS),
    "request.batchable": ("hitl.tasks.form_batch",),
    "notice.due": ("hitl.tasks.send_notice",),
    "notice.digest": ("hitl.tasks.send_digest",),
    "notice.test": ("hitl.tasks.send_test",),
    "proposal.told": ("agents.tasks.tell",),
    "execution.queued": ("hitl.tasks.execute",),
    "export.asked": ("hitl.tasks.write_export",),
    "dataset.consented": ("hitl.tasks.write_dataset",),
    "incident.declared": ("hitl.tasks.freeze_deadlines",),
    "stop.raised": ("hitl.tasks.enforce_stop",),
}

# People.
AUTH_USER_MODEL = "policies.Person"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # first: it refuses before a password check
    "django.contrib.auth.backends.ModelBackend",
    "policies.second_factors.CodeBackend",
    "policies.passkeys.PasskeyBackend",
    "guardian.backends.ObjectPermissionBackend",
]
ANONYMOUS_USER_NAME = None
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"  # which leads on by role
LOGOUT_REDIRECT_URL = LOGIN_URL
_VALIDATORS = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_VALIDATORS}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_VALIDATORS}.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": f"{_VALIDATORS}.CommonPasswordValidator"},
]
AXES_HANDLER = "hitl.axes_handler.Attempts"
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_HTTP_RESPONSE_CODE = 429
AXES_LOCKOUT_CALLABLE = "hitl.views.locked_out"
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# Cookies. `__Host-` binds them to this host, to https and to the whole path.
_SECURE = COUNTERSEAL.secure_cookies
_PREFIX = "__Host-" if _SECURE else ""
CACHES = {
    name: {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": name}
    for name in ("default", "sights")
}
SESSION_COOKIE_NAME = f"{_PREFIX}session"
SESSION_COOKIE_SECURE = _SECURE
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 60 * 60
CSRF_COOKIE_NAME = f"{_PREFIX}csrf"
CSRF_COOKIE_SECURE = _SECURE
CSRF_COOKIE_HTTPONLY = True  # forms carry the token; no script needs the cookie
CSRF_COOKIE_SAMESITE = "Lax"
# In the session: Django's message cookie would lack the `__Host-` prefix.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
CSRF_FAILURE_VIEW = "hitl.views.csrf_failure"
CSRF_TRUSTED_ORIGINS = [COUNTERSEAL.base_url]

# Pages may use no inline scripts or styles, and nothing from other sites.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_SSL_REDIRECT = COUNTERSEAL.https
# Load balancers and Prometheus ask a process by http.
SECURE_REDIRECT_EXEMPT = [r"^livez$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60 if COUNTERSEAL.https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = COUNTERSEAL.https
SECURE_HSTS_PRELOAD = COUNTERSEAL.https

# hitl/live/buffering.py refuses a larger body with `too_large` before Django sees it.
# Django's own limit is higher, so that it never answers first.
DATA_UPLOAD_MAX_MEMORY_SIZE = COUNTERSEAL.evidence_file_bytes + 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1000

STATIC_URL = "/static/"
STATIC_ROOT = (
    environment.COLLECTED
    if environment.COLLECTED.is_dir()
    else COUNTERSEAL.state / "static"
)
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

_MAIL = connections.build_mail_config(COUNTERSEAL.mail_url)
EMAIL_BACKEND = _MAIL.backend
EMAIL_FILE_PATH = COUNTERSEAL.state / "mail"
EMAIL_HOST, EMAIL_PORT = _MAIL.host, _MAIL.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _MAIL.user, _MAIL.password
EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL.starttls, _MAIL.tls
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = COUNTERSEAL.mail_from

LOGGING = logs.configure_logging(COUNTERSEAL.log_format, COUNTERSEAL.log_level)
