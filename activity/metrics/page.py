"""The page that Prometheus reads, for staff and for clients with `METRICS_TOKEN` as bearer token."""

import time
from collections.abc import Iterator

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from activity.health.readiness import probe
from activity.metrics import conversations, counted, servers, work


class Everything(Collector):
    """A collector that reads all values again with every scrape.

    What the database knows is left out where it does not answer: the checks must come through then.
    """

    def collect(self) -> Iterator[Metric]:
        began = time.monotonic()
        health = probe()
        yield from servers.gauges(health)
        if health.database:
            yield from work.gauges(health.work)
            yield from conversations.gauges()
        yield from counted.families()
        yield GaugeMetricFamily(
            "paceline_scrape_seconds",
            "Seconds that reading all values took.",
            value=time.monotonic() - began,
        )


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
