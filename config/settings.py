"""All settings, read from the environment. docs/configuration.md explains each one."""

import sys
from pathlib import Path

import structlog
from django.core.exceptions import ImproperlyConfigured
from phonenumbers import SUPPORTED_REGIONS

from config import embedded
from config.embedded import database_settings
from config.environment import Environment, broker_url

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment(BASE_DIR / ".env")
# Where the embedded servers, media and logs live.
VAR = Path(env.text("PACELINE_VAR") or BASE_DIR / "var")

# Safe by default: only DEBUG brings development values.
DEBUG = env.flag("DEBUG")
TESTING = "pytest" in sys.modules


def required(name: str, development: str) -> str:
    """The value of `name`; only in debug and under test does it have a default."""
    value = env.text(name) or (development if DEBUG or TESTING else "")
    if not value:
        raise ImproperlyConfigured(
            f"{name} is not set. Set it in the environment, or set DEBUG=true to develop."
        )
    return value


SECRET_KEY = required("SECRET_KEY", "development-only-" + "x" * 50)
# Fernet keys, the newest first: the first encrypts, all decrypt (`manage.py rotate_keys`).
ENCRYPTION_KEYS = required("ENCRYPTION_KEY", "cGFjZWxpbmUtZGV2ZWxvcG1lbnQtb25seS1rZXktMDE=").split(",")
ALLOWED_HOSTS = [
    host.strip() for host in required("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1],testserver").split(",")
]
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
# Where people and services outside reach us: in links of messages and in webhooks.
PUBLIC_URL = env.text("PUBLIC_URL").rstrip("/")
if PUBLIC_URL and not PUBLIC_URL.startswith(("https://", "http://")):
    raise ImproperlyConfigured(f"PUBLIC_URL is {PUBLIC_URL!r}: it must start with https:// or http://.")

DATABASE_URL = env.text("DATABASE_URL") or embedded.urls(VAR).database
REDIS_URL = env.text("REDIS_URL") or embedded.urls(VAR).redis
DATABASE_POOL = env.whole("DATABASE_POOL", 20, 2, 500)

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_celery_beat",
    "django_htmx",
    "django_structlog",
    "axes",
    "csp",
    "channels",
    "activity",
    "accounts",
    "delivery",
    "reminders",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.request_log.RequestLog",
    "django_htmx.middleware.HtmxMiddleware",
    "accounts.middleware.DisplayZone",
    "axes.middleware.AxesMiddleware",
]
if DEBUG:
    MIDDLEWARE.append("config.not_found.PlainNotFound")

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.debug",
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# PostgreSQL through psycopg's pool: Celery closes the connection around every task, and with a pool that
# close only hands it back. A connection is tried before it is used, but not in workers, where that would double the
# statements: pumps try again anyway.
WORKER = "celery" in sys.argv[0] and "worker" in sys.argv
_database = database_settings(DATABASE_URL)
DATABASES = {
    "default": {
        **_database,
        "ENGINE": "django.db.backends.postgresql",
        "CONN_HEALTH_CHECKS": not WORKER,
        "OPTIONS": {
            # For `delivery/statements.py`; Django's own queries are never prepared.
            "prepare_threshold": 5,
            "options": "-c plan_cache_mode=force_generic_plan",
            # A server that vanished without a word is noticed within seconds; nothing to do with sockets of a folder.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
            **_database["OPTIONS"],
            "pool": {"min_size": 4, "max_size": DATABASE_POOL, "timeout": 30, "max_idle": 60},
        },
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

if TESTING:
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "dashboard"
LOGOUT_REDIRECT_URL = "login"
AXES_FAILURE_LIMIT = env.whole("LOGIN_FAILURE_LIMIT", 5, 1, 100)
AXES_COOLOFF_TIME = env.number("LOGIN_COOLOFF_HOURS", 0.25, 0.01, 24)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "registration/locked.html"
AXES_RESET_ON_SUCCESS = True

LANGUAGE_CODE = "en"
TIME_ZONE = env.text("TIME_ZONE", "UTC")
USE_TZ = True
FORMAT_MODULE_PATH = "config.formats"

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS = DEBUG or TESTING
MEDIA_ROOT = Path(env.text("MEDIA_ROOT") or VAR / "media")
MEDIA_MAX_MB = env.whole("MEDIA_MAX_MB", 100, 1, 2000)
FILE_UPLOAD_HANDLERS = [
    "reminders.uploads.SizeGuard",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG or TESTING
        else "whitenoise.storage.CompressedManifestStaticFilesStorage",
    },
}

# Outside debug everything is served over HTTPS, by a proxy that says so in X-Forwarded-Proto.
HTTPS = env.flag("HTTPS", default=not (DEBUG or TESTING))
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = env.whole("HSTS_SECONDS", 31_536_000, 0, 63_072_000) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_AGE = 14 * 24 * 3600
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "media-src": ["'self'"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "manifest-src": ["'self'"],
        "worker-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    },
}

LIVE_PREFIX = "paceline:live"
# A listener waits five seconds for a message, then asks again: with the client's own timeout of five, a quiet
# socket would be cut off again and again.
LIVE_REDIS_TIMEOUT = 15
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {
            "hosts": [{"address": REDIS_URL, "socket_timeout": LIVE_REDIS_TIMEOUT}],
            "prefix": LIVE_PREFIX,
        },
    },
}

# Out: which private networks accounts may lead to (docs/configuration.md).
PRIVATE_NETWORKS = env.words("PRIVATE_NETWORKS", ["all"])

# Webhooks in: what a service may send at once.
WEBHOOK_MAX_BYTES = env.whole("WEBHOOK_MAX_BYTES", 1_048_576, 1024, 33_554_432)

# Web push (docs/notifications.md): all three or none.
VAPID_PUBLIC_KEY = env.text("VAPID_PUBLIC_KEY")
VAPID_PRIVATE_KEY = env.text("VAPID_PRIVATE_KEY")
VAPID_SUBJECT = env.text("VAPID_SUBJECT")

# Celery on Redis: one queue per account beside this common one.
CELERY_BROKER_URL = broker_url(REDIS_URL)
CELERY_TASK_DEFAULT_QUEUE = "paceline"
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 25
CELERY_WORKER_ENABLE_SOFT_SHUTDOWN_ON_IDLE = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # for ever: a broker that is away comes back
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "priority_steps": [0],
    "visibility_timeout": 600,
    "global_keyprefix": "paceline:queue:",
    "socket_keepalive": True,
}
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_BEAT_MAX_LOOP_INTERVAL = 5
CELERY_TIMEZONE = "UTC"
# Which accounts' queues this worker serves: the i-th of n shares, written i/n.
ACCOUNT_SHARE = env.text("ACCOUNT_SHARE", "1/1")
WORKER_THREADS = env.whole("WORKER_THREADS", 64, 1, 5000)

# Delivery (SPEC W, R, P): the defaults that profiles, accounts and reminders override.
WINDOW_START_HOUR = env.whole("WINDOW_START_HOUR", 6, 0, 23)
WINDOW_END_HOUR = env.whole("WINDOW_END_HOUR", 18, 1, 24)
WINDOW_GUARD_SECONDS = env.number("WINDOW_GUARD_SECONDS", 2, 0, 60)
# How long a minute of a limit lasts. Tests and benchmarks scale it down; an hour is sixty of them.
MINUTE_SECONDS = env.number("MINUTE_SECONDS", 60, 0.5, 60)
MAX_PER_MINUTE = env.whole("MAX_PER_MINUTE", 40, 1, 100_000)
GROUP_CONCURRENCY = env.whole("GROUP_CONCURRENCY", 3, 1, 64)
PART_GAP_MIN_MS = env.whole("PART_GAP_MIN_MS", 200, 0, 60_000)
PART_GAP_MAX_MS = env.whole("PART_GAP_MAX_MS", 500, 0, 60_000)
BATCH_SIZE = env.whole("BATCH_SIZE", 75, 1, 10_000)
BATCH_PAUSE_SECONDS = env.number("BATCH_PAUSE_SECONDS", 30, 1, 3600)
FIXED_DELAY_SECONDS = env.number("FIXED_DELAY_SECONDS", 3, 2, 10)
MAX_DELAY_SECONDS = env.number("MAX_DELAY_SECONDS", 10, 2, 3600)
ERROR_RATE_SLOW = env.number("ERROR_RATE_SLOW", 0.05, 0, 1)
ERROR_RATE_STOP = env.number("ERROR_RATE_STOP", 0.20, 0, 1)
ERROR_RATE_MIN_ATTEMPTS = env.whole("ERROR_RATE_MIN_ATTEMPTS", 10, 1, 10_000)
SLOW_DOWN_FACTOR = env.number("SLOW_DOWN_FACTOR", 1.5, 1, 10)
SLOW_DOWN_CEILING = env.number("SLOW_DOWN_CEILING", 8, 1, 100)
SLOW_DOWN_RECOVERY_SENDS = env.whole("SLOW_DOWN_RECOVERY_SENDS", 20, 1, 10_000)
MAX_ATTEMPTS = env.whole("MAX_ATTEMPTS", 5, 1, 20)
BACKOFF_BASE_SECONDS = env.number("BACKOFF_BASE_SECONDS", 5, 0.1, 3600)
RATE_LIMITED_SECONDS = env.number("RATE_LIMITED_SECONDS", 60, 1, 86_400)
NOT_CONNECTED_SECONDS = env.number("NOT_CONNECTED_SECONDS", 20, 1, 86_400)
SEND_TIMEOUT_SECONDS = env.number("SEND_TIMEOUT_SECONDS", 20, 1, 120)
CONNECT_TIMEOUT_SECONDS = env.number("CONNECT_TIMEOUT_SECONDS", 5, 0.1, 60)
LEASE_SECONDS = env.number("LEASE_SECONDS", 15, 2, 120)
PUMP_SECONDS = env.number("PUMP_SECONDS", 60, 1, 300)
HORIZON_SECONDS = env.number("HORIZON_SECONDS", 10, 0.1, 60)
TICK_SECONDS = env.whole("TICK_SECONDS", 2, 1, 60)
ON_TIME_SECONDS = env.number("ON_TIME_SECONDS", 120, 1, 86_400)
OVERDUE_GAP_MIN_SECONDS = env.number("OVERDUE_GAP_MIN_SECONDS", 180, 0, 86_400)
OVERDUE_GAP_MAX_SECONDS = env.number("OVERDUE_GAP_MAX_SECONDS", 300, 0, 86_400)
OVERDUE_MAX_PER_HOUR = env.whole("OVERDUE_MAX_PER_HOUR", 10, 1, 100_000)
OVERDUE_MAX_PER_DAY = env.whole("OVERDUE_MAX_PER_DAY", 50, 1, 1_000_000)
LATENESS_LIMIT_MINUTES = env.number("LATENESS_LIMIT_MINUTES", 15, 1, 1440)

# Conversations (SPEC C3 to C6).
SECOND_MESSAGE_HOURS = env.number("SECOND_MESSAGE_HOURS", 24, 0.1, 720)
STOP_WORDS = env.words("STOP_WORDS")  # none: those of reminders/stop_words.py
FOLLOW_UP_MAX_ATTEMPTS = env.whole("FOLLOW_UP_MAX_ATTEMPTS", 3, 1, 3)
FOLLOW_UP_COOLDOWN_HOURS = env.number("FOLLOW_UP_COOLDOWN_HOURS", 48, 0.1, 8760)
FOLLOW_UP_MAX_QUEUE_SIZE = env.whole("FOLLOW_UP_MAX_QUEUE_SIZE", 5000, 1, 1_000_000)
FOLLOW_UP_BACKPRESSURE_THRESHOLD = env.whole("FOLLOW_UP_BACKPRESSURE_THRESHOLD", 200, 0, 1_000_000)
FOLLOW_UP_BACKPRESSURE_DELAY_MIN = env.number("FOLLOW_UP_BACKPRESSURE_DELAY_MIN", 0.2, 0, 10)
FOLLOW_UP_BACKPRESSURE_DELAY_MAX = env.number("FOLLOW_UP_BACKPRESSURE_DELAY_MAX", 0.4, 0, 10)
FOLLOW_UP_HYGIENE_MINUTES = env.whole("FOLLOW_UP_HYGIENE_MINUTES", 15, 1, 1440)
FOLLOW_UP_LATEST_HOURS = env.number("FOLLOW_UP_LATEST_HOURS", 24, 1, 8760)

# The country of phone numbers without a country code, for owners who set none of their own.
PHONE_REGION = env.text("PHONE_REGION").upper()
IMPORT_MAX_MB = env.whole("IMPORT_MAX_MB", 50, 1, 1000)
IMPORT_MAX_ROWS = env.whole("IMPORT_MAX_ROWS", 500_000, 1, 5_000_000)

SANDBOX_URL = env.text("SANDBOX_URL", "http://127.0.0.1:8081")

METRICS_TOKEN = env.text("METRICS_TOKEN")
LOG_LEVEL = env.text("LOG_LEVEL", "INFO")
LOG_JSON = env.flag("LOG_JSON", default=not DEBUG)
_log_processors: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso"),
    structlog.processors.format_exc_info,
]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "structured": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer()
                if LOG_JSON
                else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
            ],
            "foreign_pre_chain": _log_processors,
        },
    },
    "filters": {"without_secrets": {"()": "config.request_log.WithoutSecrets"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "axes": {"level": "WARNING"},
        "django": {"handlers": []},  # its own would say everything twice
        "django.request": {"filters": ["without_secrets"]},
        "celery.beat": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
}
structlog.configure(
    processors=[
        structlog.stdlib.filter_by_level,
        *_log_processors,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)

if PHONE_REGION and PHONE_REGION not in SUPPORTED_REGIONS:
    raise ImproperlyConfigured(
        f"PHONE_REGION ({PHONE_REGION}) is not a country: write its two letters, like MY."
    )
if len({bool(VAPID_PUBLIC_KEY), bool(VAPID_PRIVATE_KEY), bool(VAPID_SUBJECT)}) > 1:
    raise ImproperlyConfigured(
        "Web push needs VAPID_PUBLIC_KEY, VAPID_PRIVATE_KEY and VAPID_SUBJECT, or none of them. "
        "`manage.py make_vapid_keys` makes the keys; the subject is like mailto:you@example.com."
    )
if WINDOW_START_HOUR >= WINDOW_END_HOUR:
    raise ImproperlyConfigured(
        f"WINDOW_START_HOUR ({WINDOW_START_HOUR}) must be before WINDOW_END_HOUR ({WINDOW_END_HOUR})."
    )
for _low, _high in (
    ("PART_GAP_MIN_MS", "PART_GAP_MAX_MS"),
    ("OVERDUE_GAP_MIN_SECONDS", "OVERDUE_GAP_MAX_SECONDS"),
    ("FOLLOW_UP_BACKPRESSURE_DELAY_MIN", "FOLLOW_UP_BACKPRESSURE_DELAY_MAX"),
):
    if globals()[_low] > globals()[_high]:
        raise ImproperlyConfigured(f"{_low} must not be above {_high}.")
