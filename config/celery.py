"""The Celery application: the common queue here, account queues in `delivery/queues.py`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("paceline")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
