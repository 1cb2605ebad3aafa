"""The Celery application: the common queue here, account queues in `delivery/engine/wakeups.py`.

Beat only sends the names of tasks, so it imports none of them, but only the report of its clock.
"""

import os
import sys

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Django's checks import every page and the admin, for each worker and beat. `make lint` and `migrate` run them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")
BEAT = "celery" in sys.argv[0] and "beat" in sys.argv

app = Celery("paceline", amqp="config.redis.broker:AMQP")
app.config_from_object("django.conf:settings", namespace="CELERY")
if BEAT:
    app.autodiscover_tasks(["delivery.engine"], related_name="beat_clock")
else:
    app.autodiscover_tasks()
