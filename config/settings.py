"""All settings, read from the environment. docs/configuration.md explains each one."""

import sys
from pathlib import Path
from typing import Any

import structlog
from django.core.exceptions import ImproperlyConfigured
from phonenumbers import SUPPORTED_REGIONS

from config import embedded
from config.embedded import database_settings
from config.environment import Environment
from config.redis.address import redis_address
from config.redis.connection import CONNECT_SECONDS
from config.retention import days_of
from config.weak_settings import refuse_any_host, refuse_weak_key
from config.web.log_secrets import without_secrets
from config.web.proxies import networks_of

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment(BASE_DIR / ".env")
# The folder of the embedded servers, media and logs.
VAR = Path(env.text("PACELINE_VAR") or BASE_DIR / "var")

# Safe by default: only DEBUG brings development values.
DEBUG = env.flag("DEBUG")
TESTING = "pytest" in sys.modules


def required(name: str, development: str) -> str:
    """Return the value of `name`; a default exists only in debug and under test."""
    value = env.text(name) or (development if DEBUG or TESTING else "")
    if not value:
        raise ImproperlyConfigured(
            f"{name} is not set. Set it in the environment, or set DEBUG=true to develop."
        )
    return value


SECRET_KEY = required("SECRET_KEY", "development-only-" + "x" * 50)
# Older keys: sessions and links that they signed stay valid.
SECRET_KEY_FALLBACKS = env.words("SECRET_KEY_FALLBACKS")
# Unsubscribe links work for years, so that they may have keys of their own: the first signs, all are known.
UNSUBSCRIBE_KEYS = env.words("UNSUBSCRIBE_KEY")
if any(len(key) < 32 for key in UNSUBSCRIBE_KEYS):
    raise ImproperlyConfigured("UNSUBSCRIBE_KEY is too short: each of its keys needs at least 32 characters.")
if not (DEBUG or TESTING):
    refuse_weak_key("SECRET_KEY", SECRET_KEY)
    for _key in SECRET_KEY_FALLBACKS:  # their signatures are accepted as well
        refuse_weak_key("SECRET_KEY_FALLBACKS", _key)
    if UNSUBSCRIBE_KEYS:  # the others may be old keys: they can only be used to opt people out
        refuse_weak_key("UNSUBSCRIBE_KEY", UNSUBSCRIBE_KEYS[0])
# Fernet keys, the newest first: the first encrypts, all decrypt (`manage.py rotate_keys`).
ENCRYPTION_KEYS = required("ENCRYPTION_KEY", "cGFjZWxpbmUtZGV2ZWxvcG1lbnQtb25seS1rZXktMDE=").split(",")
ALLOWED_HOSTS = [
    host.strip() for host in required("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1],testserver").split(",")
]
if not (DEBUG or TESTING):
    refuse_any_host(ALLOWED_HOSTS)
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
# Where people and services outside reach us: in links of messages and in webhooks.
PUBLIC_URL = env.text("PUBLIC_URL").rstrip("/")
if PUBLIC_URL and not PUBLIC_URL.startswith(("https://", "http://")):
    raise ImproperlyConfigured(f"PUBLIC_URL is {PUBLIC_URL!r}: it must start with https:// or http://.")

DATABASE_URL = env.text("DATABASE_URL") or embedded.urls(VAR).database
REDIS_URL = env.text("REDIS_URL") or embedded.urls(VAR).redis
# The authority that signed the certificate of a rediss:// server, where the system does not know it.
REDIS_CA_FILE = env.text("REDIS_CA_FILE")
REDIS = redis_address(REDIS_URL, ca_file=REDIS_CA_FILE)
# How long to wait for an answer of Redis.
REDIS_TIMEOUT_SECONDS = env.number("REDIS_TIMEOUT_SECONDS", 3, 0.5, 30)
DATABASE_POOL = env.whole("DATABASE_POOL", 20, 2, 500)
# PgBouncer in transaction mode is between here and PostgreSQL: no process has a session of its own.
PGBOUNCER = env.flag("PGBOUNCER")

# Workers and beat serve no pages, and `runserver` alone needs the web server inside Django: each takes memory.
PAGES = "celery" not in sys.argv[0]
INSTALLED_APPS = [
    *(["daphne"] if "runserver" in sys.argv else []),
    "django.contrib.admin" if PAGES else "django.contrib.admin.apps.SimpleAdminConfig",
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
    "audit",
    "accounts",
    "delivery",
    "reminders",
    "queues",
    "api",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "people",
    "notices",
]

MIDDLEWARE = [
    "api.middleware.ProblemAnswers",
    "config.web.proxies.ForwardedAddress",
    "config.web.odd_requests.RefuseOddRequests",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "audit.middleware.AuditOrigin",
    "django.contrib.messages.middleware.MessageMiddleware",
    "config.redis.publishing.SayDelays",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.web.request_log.RequestLog",
    "django_htmx.middleware.HtmxMiddleware",
    "accounts.middleware.DisplayZone",
    "people.middleware.RequireSecondFactor",
    "allauth.account.middleware.AccountMiddleware",
    "axes.middleware.AxesMiddleware",
    "delivery.pages.busy.OutwardCalls",
]
if DEBUG:
    MIDDLEWARE.append("config.web.not_found.PlainNotFound")

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
# close only returns it. A connection is tested before it is used, but not in workers, where that would double the
# statements: pumps try again anyway.
WORKER = "celery" in sys.argv[0] and "worker" in sys.argv
_database = database_settings(DATABASE_URL)
DATABASES = {
    "default": {
        **_database,
        "ENGINE": "django.db.backends.postgresql",
        "CONN_HEALTH_CHECKS": not WORKER,
        "DISABLE_SERVER_SIDE_CURSORS": PGBOUNCER,
        "OPTIONS": {
            # For `delivery/engine/sql.py`; Django's own queries are never prepared. PgBouncer takes neither.
            **(
                {"prepare_threshold": None}
                if PGBOUNCER
                # Compiling a plan (jit) takes longer than any of our statements.
                else {"prepare_threshold": 5, "options": "-c plan_cache_mode=force_generic_plan -c jit=off"}
            ),
            # A server that vanished without a word is noticed within seconds; nothing to do with sockets of a folder.
            "connect_timeout": 5,
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
            **_database["OPTIONS"],
            "pool": {"min_size": 1 if DEBUG else 4, "max_size": DATABASE_POOL, "timeout": 30, "max_idle": 60},
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
AXES_CLIENT_IP_CALLABLE = "config.web.proxies.login_address"
AXES_WHITELIST_CALLABLE = "accounts.login.is_whitelisted"
LOGIN_ADDRESS_LIMIT = env.whole("LOGIN_ADDRESS_LIMIT", 50, 5, 10_000)
# Proxies whose X-Forwarded-For is trusted (config/web/proxies.py).
TRUSTED_PROXIES = env.words("TRUSTED_PROXIES", ["127.0.0.0/8", "::1"])
networks_of(TRUSTED_PROXIES)
AXES_LOCKOUT_TEMPLATE = "registration/locked.html"
AXES_RESET_ON_SUCCESS = True

# django-allauth: e-mail, password reset, second factor, passkeys, sessions (docs/people.md).
ACCOUNT_ADAPTER = "people.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"  # people are invited; an e-mail that is changed is confirmed first
ACCOUNT_UNIQUE_EMAIL = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_SESSION_REMEMBER = True
MFA_ADAPTER = "people.adapters.MfaAdapter"
MFA_FORMS = {"authenticate": "people.second_factor.CodeForm"}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True
# Who has to have a second factor.
REQUIRE_MFA = env.text("REQUIRE_MFA", "nobody")
if REQUIRE_MFA not in {"nobody", "staff", "everybody"}:
    raise ImproperlyConfigured(f"REQUIRE_MFA is {REQUIRE_MFA!r}: write nobody, staff or everybody.")
# Where django-allauth counts its limits: for all processes together.
CACHES = {
    "default": {
        "BACKEND": "config.redis.shared_cache.SharedCache",
        "LOCATION": "redis",  # the address is REDIS_URL (config/redis/client.py)
        "KEY_PREFIX": "paceline:cache",
    }
}
PASSWORD_RESET_TIMEOUT = 24 * 3600
# Logging in through an OpenID Connect provider: all three, or none. It makes no account (people/adapters.py).
OIDC_ISSUER = env.text("OIDC_ISSUER").rstrip("/")
OIDC_CLIENT_ID = env.text("OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = env.text("OIDC_CLIENT_SECRET")
OIDC_NAME = env.text("OIDC_NAME", "Single sign-on")
SOCIALACCOUNT_ADAPTER = "people.adapters.OidcAdapter"
SOCIALACCOUNT_LOGIN_ON_GET = (
    True  # a form would need the provider in form-action of the content security policy
)
SOCIALACCOUNT_OPENID_CONNECT_URL_PREFIX = ""
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "oidc",
                "name": OIDC_NAME,
                "client_id": OIDC_CLIENT_ID,
                "secret": OIDC_CLIENT_SECRET,
                "settings": {"server_url": OIDC_ISSUER},
            }
        ]
        if OIDC_ISSUER
        else [],
    }
}

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
# Several machines without a shared folder keep media in an S3 bucket; MEDIA_ROOT then has copies (config/bucket.py).
MEDIA_BUCKET = env.text("MEDIA_BUCKET")
MEDIA_CACHE_MB = env.whole("MEDIA_CACHE_MB", 2000, 1, 1_000_000)
MEDIA_S3_ENDPOINT = env.text("MEDIA_S3_ENDPOINT").rstrip("/")
MEDIA_S3_REGION = env.text("MEDIA_S3_REGION")
MEDIA_S3_KEY = env.text("MEDIA_S3_KEY")
MEDIA_S3_SECRET = env.text("MEDIA_S3_SECRET")
# Where gateways reach this installation to fetch the files of messages (delivery/file_addresses); empty: they do not.
FILES_URL = env.text("FILES_URL").rstrip("/")
FILES_URL_MINUTES = env.whole("FILES_URL_MINUTES", 60, 15, 1440)
FILES_FROM = env.words("FILES_FROM")  # the addresses and networks of gateways; none: any that has the address
FILES_READERS = env.whole("FILES_READERS", 40, 2, 1000)
if FILES_URL and not FILES_URL.startswith(("https://", "http://")):
    raise ImproperlyConfigured(f"FILES_URL is {FILES_URL!r}: it must start with https:// or http://.")
networks_of(FILES_FROM, setting="FILES_FROM")
STORAGES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        # Other users of the machine cannot read media or imported lists (config/private_files.py).
        "OPTIONS": {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700},
    },
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG or TESTING
        else "whitenoise.storage.CompressedManifestStaticFilesStorage",
    },
}

if MEDIA_BUCKET:
    STORAGES["default"] = {
        "BACKEND": "config.bucket.BucketStorage",
        "OPTIONS": {
            "cache": str(MEDIA_ROOT),
            "cache_mb": MEDIA_CACHE_MB,
            "bucket_name": MEDIA_BUCKET,
            "endpoint_url": MEDIA_S3_ENDPOINT or None,
            "region_name": MEDIA_S3_REGION or None,
            "access_key": MEDIA_S3_KEY or None,
            "secret_key": MEDIA_S3_SECRET or None,
        },
    }

# Outside debug everything is served over HTTPS, by a proxy that says so in X-Forwarded-Proto.
HTTPS = env.flag("HTTPS", default=not (DEBUG or TESTING))
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = HTTPS
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not HTTPS
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

# The most sockets of open pages, in one process.
SOCKETS = env.whole("SOCKETS", 5000, 2, 100_000)
SOCKETS_PER_PERSON = env.whole("SOCKETS_PER_PERSON", 30, 1, 1000)
LIVE_PREFIX = "paceline:live"
# A listener waits five seconds for a message, then asks again: with the client's own timeout of five, a quiet
# socket would be cut off again and again.
LIVE_REDIS_TIMEOUT = 15
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "config.redis.live_layer.LiveLayer",
        "CONFIG": {
            "hosts": [
                {
                    "address": REDIS.url,
                    "socket_timeout": LIVE_REDIS_TIMEOUT,
                    "socket_connect_timeout": CONNECT_SECONDS,
                    **REDIS.tls,
                }
            ],
            "prefix": LIVE_PREFIX,
        },
    },
}

# Outgoing: how many calls to services web requests make at once, in one process (delivery/sessions/calls.py).
OUTWARD_CALLS = env.whole("OUTWARD_CALLS", 40, 2, 1000)
OUTWARD_CALLS_PER_PERSON = env.whole("OUTWARD_CALLS_PER_PERSON", 4, 1, 1000)
ANSWER_TIMEOUT_SECONDS = env.number("ANSWER_TIMEOUT_SECONDS", 10, 1, 120)

# The DNS servers that SPF, DKIM and DMARC are asked of, as 1.1.1.1 or 127.0.0.1:5353; those of this machine if empty.
DNS_SERVERS = env.words("DNS_SERVERS")

# Outgoing: which private networks accounts may connect to (docs/configuration.md).
PRIVATE_NETWORKS = env.words("PRIVATE_NETWORKS", ["all" if DEBUG or TESTING else "none"])
PRIVATE_NETWORKS_CHOSEN = bool(env.text("PRIVATE_NETWORKS"))  # else the start logs a hint about the default

# Where sources of queues are asked (docs/sources.md), if a proxy stands in front of them.
NOTION_URL = env.text("NOTION_URL", "https://api.notion.com")
GOOGLE_SHEETS_URL = env.text("GOOGLE_SHEETS_URL", "https://sheets.googleapis.com")
GOOGLE_TOKENS_URL = env.text("GOOGLE_TOKENS_URL", "https://oauth2.googleapis.com")

# Incoming webhooks: the most that a service may send at once.
WEBHOOK_MAX_BYTES = env.whole("WEBHOOK_MAX_BYTES", 1_048_576, 1024, 33_554_432)

# The HTTP API (docs/api.md): the most requests of one key.
API_PER_MINUTE = env.whole("API_PER_MINUTE", 600, 1, 100_000)

# Web push (docs/notifications.md): all three or none.
VAPID_PUBLIC_KEY = env.text("VAPID_PUBLIC_KEY")
VAPID_PRIVATE_KEY = env.text("VAPID_PRIVATE_KEY")
VAPID_SUBJECT = env.text("VAPID_SUBJECT")
# The push services of the known browsers. Nothing is posted to any other address that a browser names.
PUSH_SERVICES = env.words(
    "PUSH_SERVICES",
    ["fcm.googleapis.com", "push.services.mozilla.com", "notify.windows.com", "push.apple.com"],
)

# How long a run may wait for a person before its owner is told again, and then the next person; 0: never.
ESCALATE_AFTER_MINUTES = env.whole("ESCALATE_AFTER_MINUTES", 30, 0, 10_080)

# The mail server of the installation itself, for mails to the people who use it. Accounts have servers of their own.
EMAIL_HOST = env.text("EMAIL_HOST")
EMAIL_PORT = env.whole("EMAIL_PORT", 587, 1, 65_535)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD")
EMAIL_USE_SSL = env.flag("EMAIL_USE_SSL")
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS", default=not EMAIL_USE_SSL)
EMAIL_TIMEOUT = env.whole("EMAIL_TIMEOUT", 10, 1, 30)
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL")
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'dummy'}.EmailBackend"

# Celery on Redis: one queue per account beside this common one.
CELERY_BROKER_URL = REDIS.broker
CELERY_BROKER_USE_SSL = REDIS.tls or None
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
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # without end: a broker that is away comes back
CELERY_BROKER_CHANNEL_ERROR_RETRY = True  # whatever Redis answers, a worker connects again instead of ending
VISIBILITY_SECONDS = 600  # after which Redis delivers a task again that was not acknowledged
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "priority_steps": [0],
    "visibility_timeout": VISIBILITY_SECONDS,
    "global_keyprefix": "paceline:queue:",
    # A server that vanished without a word is noticed within seconds.
    "socket_timeout": REDIS_TIMEOUT_SECONDS,
    "socket_connect_timeout": CONNECT_SECONDS,
    "socket_keepalive": True,
    "health_check_interval": 5,
    # For connections that publish; workers and beat try without end (config/redis/broker.py).
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.2,
    "interval_max": 0.5,
}
# One more try, for a connection that was closed meanwhile: the wake-up in the database does the rest.
CELERY_TASK_PUBLISH_RETRY_POLICY = {
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.2,
    "interval_max": 0.5,
}
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_BEAT_MAX_LOOP_INTERVAL = 5
CELERY_TIMEZONE = "UTC"
# Which accounts' queues this worker serves: the i-th of n shares, written i/n.
ACCOUNT_SHARE = env.text("ACCOUNT_SHARE", "1/1")
WORKER_THREADS = env.whole("WORKER_THREADS", 64, 1, 5000)

# Off: this process sends nothing, and a worker that starts with it writes a stop that holds for all.
SENDING = env.flag("SENDING", default=True)

# Delivery (SPEC W, R, P): the defaults that profiles, accounts and reminders override.
WINDOW_START_HOUR = env.whole("WINDOW_START_HOUR", 6, 0, 23)
WINDOW_END_HOUR = env.whole("WINDOW_END_HOUR", 18, 1, 24)
WINDOW_GUARD_SECONDS = env.number("WINDOW_GUARD_SECONDS", 2, 0, 60)
# How long a minute of a limit lasts. Tests and benchmarks scale it down; an hour is sixty of them.
MINUTE_SECONDS = env.number("MINUTE_SECONDS", 60, 0.5, 60)
MAX_PER_MINUTE = env.whole("MAX_PER_MINUTE", 40, 1, 100_000)
# The most that accounts' own limits and profiles may allow, per channel (accounts/ceilings.py); 0 is no ceiling.
CEILINGS: dict[str, dict[str, int]] = {
    "whatsapp": {
        "per_minute": env.whole("WHATSAPP_MOST_PER_MINUTE", 60, 0, 100_000),
        "per_day": env.whole("WHATSAPP_MOST_PER_DAY", 10_000, 0, 10_000_000),
    },
    "email": {
        "per_minute": env.whole("EMAIL_MOST_PER_MINUTE", 600, 0, 100_000),
        "per_day": env.whole("EMAIL_MOST_PER_DAY", 0, 0, 10_000_000),
    },
    "linkedin": {
        "per_minute": env.whole("LINKEDIN_MOST_PER_MINUTE", 10, 0, 100_000),
        "per_day": env.whole("LINKEDIN_MOST_PER_DAY", 150, 0, 10_000_000),
    },
    "matrix": {
        "per_minute": env.whole("MATRIX_MOST_PER_MINUTE", 120, 0, 100_000),
        "per_day": env.whole("MATRIX_MOST_PER_DAY", 0, 0, 10_000_000),
    },
}
# A person who wrote to an account within so many days is known to it (SPEC N1). The ledger keeps at least 35.
KNOWN_DAYS = env.whole("KNOWN_DAYS", 28, 1, 35)
# How long the pace of an account grows from a tenth to its full one after it connected again (SPEC P18).
RECONNECT_RAMP_MINUTES = env.number("RECONNECT_RAMP_MINUTES", 10, 0, 1440)
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
SLOW_DOWN_LONGEST_GAP_SECONDS = env.number("SLOW_DOWN_LONGEST_GAP_SECONDS", 3600, 1, 86_400)
HEALTH_LOST = env.number("HEALTH_LOST", 0.10, 0.001, 1)
HEALTH_LOST_EMAIL = env.number("HEALTH_LOST_EMAIL", 0.05, 0.001, 1)
HEALTH_COMPLAINED = env.number("HEALTH_COMPLAINED", 0.001, 0.0001, 1)
HEALTH_SLOW_FACTOR = env.number("HEALTH_SLOW_FACTOR", 2, 1, 10)
HEALTH_PAUSE_HOURS = env.number("HEALTH_PAUSE_HOURS", 24, 0.1, 168)
SLOW_DOWN_RECOVERY_SENDS = env.whole("SLOW_DOWN_RECOVERY_SENDS", 20, 1, 10_000)
MAX_ATTEMPTS = env.whole("MAX_ATTEMPTS", 5, 1, 20)
BACKOFF_BASE_SECONDS = env.number("BACKOFF_BASE_SECONDS", 5, 0.1, 3600)
RATE_LIMITED_SECONDS = env.number("RATE_LIMITED_SECONDS", 60, 1, 86_400)
NOT_CONNECTED_SECONDS = env.number("NOT_CONNECTED_SECONDS", 20, 1, 86_400)
TROUBLE_STREAK = env.whole("TROUBLE_STREAK", 5, 1, 100)
TROUBLE_WAIT_MAX_MINUTES = env.number("TROUBLE_WAIT_MAX_MINUTES", 5, 0.1, 1440)
TROUBLE_OFFLINE_MINUTES = env.number("TROUBLE_OFFLINE_MINUTES", 30, 0.1, 1440)
SEND_TIMEOUT_SECONDS = env.number("SEND_TIMEOUT_SECONDS", 20, 1, 120)
CONNECT_TIMEOUT_SECONDS = env.number("CONNECT_TIMEOUT_SECONDS", 5, 0.1, 60)
LEASE_SECONDS = env.number("LEASE_SECONDS", 15, 2, 120)
CLOCK_TOLERANCE_SECONDS = env.number("CLOCK_TOLERANCE_SECONDS", 5, 1, 60)
# A shift and its slowest message have to be over before Redis delivers the pump again.
PUMP_SECONDS = min(
    env.number("PUMP_SECONDS", 300, 1, 300), max(60.0, VISIBILITY_SECONDS - 30 - 6 * SEND_TIMEOUT_SECONDS)
)
# Send times after the end of a shift would only be given back.
HORIZON_SECONDS = min(env.number("HORIZON_SECONDS", 60, 0.1, 60), PUMP_SECONDS)
TICK_SECONDS = env.whole("TICK_SECONDS", 2, 1, 60)
ON_TIME_SECONDS = env.number("ON_TIME_SECONDS", 120, 1, 86_400)
OVERDUE_GAP_MIN_SECONDS = env.number("OVERDUE_GAP_MIN_SECONDS", 180, 0, 86_400)
OVERDUE_GAP_MAX_SECONDS = env.number("OVERDUE_GAP_MAX_SECONDS", 300, 0, 86_400)
OVERDUE_MAX_PER_HOUR = env.whole("OVERDUE_MAX_PER_HOUR", 10, 1, 100_000)
OVERDUE_MAX_PER_DAY = env.whole("OVERDUE_MAX_PER_DAY", 50, 1, 1_000_000)
TEST_SENDS_PER_DAY = env.whole("TEST_SENDS_PER_DAY", 20, 1, 1000)
UNDO_SECONDS = env.number("UNDO_SECONDS", 10, 0, 300)
APPROVAL_ABOVE = env.whole("APPROVAL_ABOVE", 0, 0, 10_000_000)
LATENESS_LIMIT_MINUTES = env.number("LATENESS_LIMIT_MINUTES", 15, 1, 1440)

# Conversations (SPEC C3 to C6).
SECOND_MESSAGE_HOURS = env.number("SECOND_MESSAGE_HOURS", 24, 0.1, 720)
STOP_WORDS = env.words("STOP_WORDS")  # none: those of reminders/conversations/stop_words.py
FOLLOW_UP_MAX_ATTEMPTS = env.whole("FOLLOW_UP_MAX_ATTEMPTS", 3, 1, 3)
FOLLOW_UP_COOLDOWN_HOURS = env.number("FOLLOW_UP_COOLDOWN_HOURS", 48, 0.1, 8760)
FOLLOW_UP_MAX_QUEUE_SIZE = env.whole("FOLLOW_UP_MAX_QUEUE_SIZE", 5000, 1, 1_000_000)
FOLLOW_UP_BACKPRESSURE_THRESHOLD = env.whole("FOLLOW_UP_BACKPRESSURE_THRESHOLD", 200, 0, 1_000_000)
FOLLOW_UP_BACKPRESSURE_DELAY_MIN = env.number("FOLLOW_UP_BACKPRESSURE_DELAY_MIN", 0.2, 0, 10)
FOLLOW_UP_BACKPRESSURE_DELAY_MAX = env.number("FOLLOW_UP_BACKPRESSURE_DELAY_MAX", 0.4, 0, 10)
FOLLOW_UP_HYGIENE_MINUTES = env.whole("FOLLOW_UP_HYGIENE_MINUTES", 15, 1, 1440)
# How long details of ended runs, the ledger, replies and the like are kept; 0 keeps everything.
KEEP_DAYS = env.whole("KEEP_DAYS", 0, 0, 36_500)
if 0 < KEEP_DAYS < 35:
    raise ImproperlyConfigured(
        f"KEEP_DAYS is {KEEP_DAYS}: limits need the last 35 days. Use 0 or at least 35."
    )
# The same for single kinds, which go before KEEP_DAYS.
KEEP_DAYS_OF = days_of(env.words("KEEP_DAYS_OF"))
# How long the audit log is kept; 0 keeps all of it.
AUDIT_KEEP_DAYS = env.whole("AUDIT_KEEP_DAYS", 0, 0, 36_500)
if 0 < AUDIT_KEEP_DAYS < 35:
    raise ImproperlyConfigured(
        f"AUDIT_KEEP_DAYS is {AUDIT_KEEP_DAYS}: the database refuses to remove entries of the last 30 days. "
        "Use 0 or at least 35."
    )
FOLLOW_UP_LATEST_HOURS = env.number("FOLLOW_UP_LATEST_HOURS", 24, 1, 8760)

# The country of phone numbers without a country code, for owners who set none of their own.
PHONE_REGION = env.text("PHONE_REGION").upper()
IMPORT_MAX_MB = env.whole("IMPORT_MAX_MB", 50, 1, 1000)
IMPORT_MAX_ROWS = env.whole("IMPORT_MAX_ROWS", 500_000, 1, 5_000_000)

SANDBOX_URL = env.text("SANDBOX_URL", "http://127.0.0.1:8081")

METRICS_TOKEN = env.text("METRICS_TOKEN")
METRICS_PER_ACCOUNT = env.flag("METRICS_PER_ACCOUNT", default=True)
LOG_LEVEL = env.text("LOG_LEVEL", "INFO")
LOG_JSON = env.flag("LOG_JSON", default=not DEBUG)
_log_processors: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso"),
    structlog.processors.format_exc_info,
    without_secrets,
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
    "filters": {"without_secrets": {"()": "config.web.request_log.WithoutSecrets"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "axes": {"level": "WARNING"},
        "django": {"handlers": []},  # its own handlers would log everything twice
        "django.request": {"filters": ["without_secrets"]},
        "celery.beat": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},  # each request of a source would be a line
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
if EMAIL_HOST and not DEFAULT_FROM_EMAIL:
    raise ImproperlyConfigured(
        "EMAIL_HOST is set and DEFAULT_FROM_EMAIL is not: name the sender of mails, like paceline@example.com."
    )
if EMAIL_USE_SSL and EMAIL_USE_TLS:
    raise ImproperlyConfigured(
        "EMAIL_USE_SSL and EMAIL_USE_TLS exclude each other: EMAIL_USE_TLS is STARTTLS, mostly on port 587, "
        "EMAIL_USE_SSL is TLS from the start, mostly on port 465."
    )
if len({bool(OIDC_ISSUER), bool(OIDC_CLIENT_ID), bool(OIDC_CLIENT_SECRET)}) > 1:
    raise ImproperlyConfigured(
        "OpenID Connect needs OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET, or none of them."
    )
if OIDC_ISSUER and not OIDC_ISSUER.startswith(("https://", "http://" if DEBUG or TESTING else "https://")):
    raise ImproperlyConfigured(f"OIDC_ISSUER is {OIDC_ISSUER!r}: it must start with https://.")
if not MEDIA_BUCKET and (MEDIA_S3_ENDPOINT or MEDIA_S3_REGION or MEDIA_S3_KEY or MEDIA_S3_SECRET):
    raise ImproperlyConfigured(
        "MEDIA_S3_ENDPOINT, MEDIA_S3_REGION, MEDIA_S3_KEY and MEDIA_S3_SECRET say how to reach MEDIA_BUCKET, which is "
        "not set. Name the bucket, or unset them."
    )
if bool(MEDIA_S3_KEY) != bool(MEDIA_S3_SECRET):
    raise ImproperlyConfigured("MEDIA_S3_KEY and MEDIA_S3_SECRET belong together: set both, or none of them.")
if MEDIA_S3_ENDPOINT and not MEDIA_S3_ENDPOINT.startswith(("https://", "http://")):
    raise ImproperlyConfigured(
        f"MEDIA_S3_ENDPOINT is {MEDIA_S3_ENDPOINT!r}: it must start with https:// or http://."
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
