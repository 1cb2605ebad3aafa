FROM python:3.13-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

RUN useradd --system --create-home --home-dir /srv/paceline --uid 10001 paceline
WORKDIR /srv/paceline

COPY requirements.txt .
RUN pip install --require-hashes --requirement requirements.txt

COPY . .
# Only the names of the static files are worked out here; the values below are used for nothing else.
RUN SECRET_KEY="$(python -c 'import secrets; print(secrets.token_urlsafe(50))')" ENCRYPTION_KEY=build ALLOWED_HOSTS=build python manage.py collectstatic --no-input \
    && install --directory --owner=paceline --group=paceline var var/media

USER paceline
EXPOSE 8000
CMD ["daphne", "-v", "0", "--websocket_connect_timeout", "30", "-b", "0.0.0.0", "-p", "8000", "config.asgi:application"]

# Asked by a name that is allowed, since Django answers to no other.
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=4 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(u.Request('http://127.0.0.1:8000/readyz', headers={'Host': os.environ['ALLOWED_HOSTS'].split(',')[0]}), timeout=8)"]
