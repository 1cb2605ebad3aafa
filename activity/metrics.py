"""What Prometheus reads: counters that all processes share, and what the database knows now.

For staff, and for whoever has `METRICS_TOKEN` as a bearer.
"""

from collections.abc import Iterator

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from redis import RedisError

from accounts.models import Recipient
from activity import counters
from reminders.follow_ups import queue
from reminders.models import FollowUp


class Everything(Collector):
    """Asked anew with every scrape."""

    def collect(self) -> Iterator[Metric]:
        yield from _gauges()
        yield from _counters()


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    if not _may_read(request):
        return HttpResponse("Metrics are for staff, or with the token of METRICS_TOKEN.\n", status=403)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Everything())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    given = request.headers.get("Authorization", "")
    token = settings.METRICS_TOKEN
    if token and constant_time_compare(given, f"Bearer {token}"):
        return True
    return request.user.is_active and request.user.is_staff


def _gauges() -> Iterator[Metric]:
    limits = queue.limits()
    waiting = GaugeMetricFamily(
        "paceline_follow_ups", "Follow-ups that wait or are on their way.", labels=["status"]
    )
    for status in (FollowUp.Status.QUEUED, FollowUp.Status.SENDING):
        waiting.add_metric([status], FollowUp.objects.filter(status=status).count())
    yield waiting
    yield GaugeMetricFamily(
        "paceline_follow_up_queue_limit", "What the queue holds at most.", value=limits.most
    )
    yield GaugeMetricFamily(
        "paceline_follow_up_backpressure_threshold",
        "Above this only high urgency enters.",
        value=limits.threshold,
    )
    resting = Recipient.objects.filter(cooldown_until__isnull=False).count()
    yield GaugeMetricFamily("paceline_recipients_cooling_down", "Recipients left alone.", value=resting)


def _counters() -> Iterator[Metric]:
    """All counters, those of one name together. Without Redis there are none, and the gauges still are."""
    families: dict[str, CounterMetricFamily] = {}
    try:
        counted = list(counters.counted())
    except RedisError:
        return
    for name, labels, value in counted:
        if name not in families:
            families[name] = CounterMetricFamily(
                f"paceline_{name}", f"{name.replace('_', ' ').capitalize()}.", labels=sorted(labels)
            )
        families[name].add_metric([text for _, text in sorted(labels.items())], value)
    yield from families.values()
