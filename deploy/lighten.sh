#!/bin/sh
# lighten.sh <virtual environment> <folder>: take out of an image's environment what no
# process of Counterseal reads, collect the static files, and compile the modules that
# processes import: those of the environment in place, the interpreter's into the folder.
set -eu
environment=$1
compiled=$2
packages=$(echo "$environment"/lib/python3*/site-packages)
app=$packages/counterseal/app

# Symbols for debuggers. Libraries in folders named *.libs were changed after they were
# linked, and do not bear it.
find "$packages" -name '*.so' ! -path '*.libs/*' -exec strip --strip-unneeded {} +
# Counterseal speaks English (USE_I18N is False).
find "$packages" -name '*.po' -delete -o -name '*.mo' -delete
# Tests, what compilers and type checkers read, and parts that nothing here imports:
# databases that Counterseal does not run on, letters in pictures, and
# extensions of CEL that the policy language does not have.
find "$packages" -type d \( -name tests -o -name testapp \) -prune -exec rm -r {} +
find "$packages" \( -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.c' \
    -o -name '*.h' -o -name '*.proto' \) -delete
(
    cd "$packages"
    rm -r cel_expr_python/ext ninja/static django/contrib/gis django/db/backends/mysql \
        django/db/backends/oracle \
        PIL/_avif*.so PIL/_imagingft*.so pillow.libs/libavif* pillow.libs/libharfbuzz* \
        pillow.libs/libfreetype*
)

# What browsers load is collected, so that no process has to do it when it starts, and the
# modules are compiled that processes import: they may not write beside them later. It is
# also the proof that nothing was taken out that they need.
"$environment/bin/python" -m compileall -q "$packages/counterseal"
find /usr/lib/python3* -name '*.pyc' -delete
mkdir "$app/collected"
"$environment/bin/python" -P - "$app" <<'END'
import base64, importlib, os, shutil, sys, tempfile

app = sys.argv[1]
sys.path.insert(0, app)
key = base64.b64encode(bytes(32)).decode()
os.environ |= dict.fromkeys(("DATA_KEY", "TAG_KEY", "GRANT_KEY"), key) | {
    "DJANGO_SETTINGS_MODULE": "hitl.settings",
    "SECRET_KEY": key * 2,
    "WEBHOOK_SECRET": f"whsec_{key}",
    "BASE_URL": "https://build.invalid",
    "DATABASE_URL": "postgresql://build.invalid/none",
    "REDIS_URL": "redis://build.invalid",
    "STATE": tempfile.mkdtemp(),
}
import django
from django.conf import settings
from django.core.management import call_command
from django.urls import get_resolver

django.setup()
settings.WHITENOISE_KEEP_ONLY_HASHED_FILES = True
call_command("collectstatic", interactive=False, verbosity=0)
for package in ("django/contrib/admin", "django_htmx"):
    shutil.rmtree(f"{app}/../../{package}/static")

get_resolver().url_patterns
for name in (
    "counterseal_client.command_line.main",
    "PIL.Image",
    "celery.bin.beat",
    "celery.bin.worker",
    "policies.conditions",
    "psycopg",
    "pypdfium2",
    "reviews.evidence.renderer",
    "celery.app.amqp",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.worker.components",
    "celery.worker.consumer",
    "django.core.management.commands.check",
    "django.core.management.commands.migrate",
    "django.db.backends.postgresql.base",
    "hitl.asgi",
    "hitl.celery",
    "hitl.protocol",
    "hitl.tasks",
    "hitl.web",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
):
    importlib.import_module(name)
END
mkdir "$compiled"
cd /
find usr/lib/python3* -name '*.pyc' -exec cp --parents --target-directory "$compiled" {} +
