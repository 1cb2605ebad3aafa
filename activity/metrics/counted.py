"""The counters of all processes, as Redis keeps them."""

from collections.abc import Iterator

from django.conf import settings
from prometheus_client.core import CounterMetricFamily, Metric
from redis import RedisError

from activity import counters
from activity.counters import LEASES_LOST, LIMITER_REBUILDS, MESSAGES

TEXTS = {
    MESSAGES: "Messages that left or were tried, by account, action and outcome.",
    LEASES_LOST: "Leases of accounts that a worker lost to another one.",
    LIMITER_REBUILDS: "Times that the counts of the limits were rebuilt from the ledger.",
}
PER_ACCOUNT = "account"  # the label that METRICS_PER_ACCOUNT leaves out


def families() -> Iterator[Metric]:
    """Yield all counters, those of one name together. Without Redis there are none."""
    sums: dict[str, dict[tuple[tuple[str, str], ...], int]] = {
        # Known before the first of them, so that an alert sees them grow from zero.
        LEASES_LOST: {(): 0},
        LIMITER_REBUILDS: {(): 0},
    }
    try:
        counted = list(counters.counted())
    except RedisError:
        return
    for name, labels, value in counted:
        if not settings.METRICS_PER_ACCOUNT:
            labels.pop(PER_ACCOUNT, None)
        key = tuple(sorted(labels.items()))
        family = sums.setdefault(name, {})
        family[key] = family.get(key, 0) + value
    for name, values in sums.items():
        yield _family(name, values)


def _family(name: str, values: dict[tuple[tuple[str, str], ...], int]) -> CounterMetricFamily:
    labels = [label for label, _ in next(iter(values), ())]
    text = TEXTS.get(name, f"{name.replace('_', ' ').capitalize()}.")
    family = CounterMetricFamily(f"paceline_{name}", text, labels=labels)
    for key, value in values.items():
        family.add_metric([value_of for _, value_of in key], value)
    return family
