"""The metrics for Prometheus: counters that all processes share, and current values from the database.

For staff, and for clients with `METRICS_TOKEN` as bearer token.
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
from activity.health.readiness import probe
from delivery.engine import clock_reading
from reminders.follow_ups import queue
from reminders.models import FollowUp


class Everything(Collector):
    """A collector that reads all values again with every scrape."""

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
        "paceline_follow_up_queue_limit", "The most follow-ups of one owner that may wait.", value=limits.most
    )
    yield GaugeMetricFamily(
        "paceline_follow_up_backpressure_threshold",
        "Above this number only urgent follow-ups of an owner are added.",
        value=limits.threshold,
    )
    yield from _clocks()
    yield from _of_health()
    resting = Recipient.objects.filter(cooldown_until__isnull=False).count()
    yield GaugeMetricFamily("paceline_recipients_cooling_down", "Recipients in a cooldown.", value=resting)


def _clocks() -> Iterator[Metric]:
    """Yield how far each clock differs from the database's; none without Redis, which stores the reports."""
    try:
        found = clock_reading.differences()
    except RedisError:
        return
    ahead = GaugeMetricFamily(
        "paceline_clock_ahead_seconds", "By how much a clock is ahead of the database's.", labels=["clock"]
    )
    for name, ahead_ms in sorted(found.all_ms.items()):
        ahead.add_metric([name], ahead_ms / 1000)
    yield ahead


def _of_health() -> Iterator[Metric]:
    """Yield the checks of /readyz and `doctor` as numbers, for alerts."""
    health = probe()
    checks = GaugeMetricFamily("paceline_check_ok", "1 if the check passes, else 0.", labels=["check"])
    for check in health.checks:
        checks.add_metric([check.name], int(check.ok))
    yield checks
    work = health.work
    yield GaugeMetricFamily(
        "paceline_accounts_with_work", "Accounts that have something to send.", value=len(work.accounts)
    )
    yield GaugeMetricFamily(
        "paceline_overdue_wake_ups",
        "Accounts whose wake-up is more than a minute late.",
        value=work.overdue,
    )
    yield GaugeMetricFamily(
        "paceline_oldest_wake_up_seconds", "Seconds by which the oldest wake-up is late.", value=work.oldest
    )
    yield GaugeMetricFamily(
        "paceline_unanswered_accounts", "Accounts with work that no worker takes up.", value=work.unanswered
    )
    yield GaugeMetricFamily("paceline_sending_stops", "Stops of sending that are active.", value=work.stops)


def _counters() -> Iterator[Metric]:
    """Yield all counters, those of one name together. Without Redis there are none, but the gauges remain."""
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
