"""Current values of the queue of follow-ups and of recipients who are left in peace."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from accounts.models import Recipient
from reminders.follow_ups import queue
from reminders.models import FollowUp


def gauges() -> Iterator[Metric]:
    """Yield the queue of follow-ups, its limits, and the cooldowns."""
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
    resting = Recipient.objects.filter(cooldown_until__isnull=False).count()
    yield GaugeMetricFamily("paceline_recipients_cooling_down", "Recipients in a cooldown.", value=resting)
