"""Current values of servers, workers, shares and clocks: what /readyz and `doctor` check, as numbers for alerts."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from redis import RedisError

from activity.health import workers
from activity.health.readiness import Health
from activity.health.workers import Report
from config.redis.client import client
from delivery.engine import clock_reading


def gauges(health: Health) -> Iterator[Metric]:
    """Yield the checks; then workers and clocks, which are known only while Redis answers."""
    checks = GaugeMetricFamily("paceline_check_ok", "1 if the check passes, else 0.", labels=["check"])
    for check in health.checks:
        checks.add_metric([check.name], int(check.ok))
    yield checks
    try:
        reports = workers.told(client())
    except RedisError:
        return
    yield from _workers(reports)
    yield from _shares(reports, health.work.accounts)
    if health.database:
        yield from _clocks()


def _workers(reports: Sequence[Report]) -> Iterator[Metric]:
    threads = GaugeMetricFamily("paceline_worker_threads", "Threads of a worker.", labels=["worker"])
    serving = GaugeMetricFamily(
        "paceline_worker_accounts", "Accounts that a worker is sending for.", labels=["worker"]
    )
    oldest = GaugeMetricFamily(
        "paceline_worker_oldest_lease_seconds",
        "Seconds for which a worker has held the oldest of its leases.",
        labels=["worker"],
    )
    for report in reports:
        threads.add_metric([report.name], report.threads)
        serving.add_metric([report.name], report.serving)
        oldest.add_metric([report.name], report.oldest_lease)
    yield from (threads, serving, oldest)


def _shares(reports: Sequence[Report], accounts: Sequence[int]) -> Iterator[Metric]:
    """Yield for each share its workers and its accounts with work.

    Shares are those of the numbers of shares that workers name: with 1/2 alone, 2/2 is listed with no worker.
    """
    seen = Counter((report.share.index, report.share.of) for report in reports)
    workers_of = GaugeMetricFamily(
        "paceline_share_workers", "Workers of a share of the accounts.", labels=["share"]
    )
    work_of = GaugeMetricFamily(
        "paceline_share_accounts_with_work",
        "Accounts of a share that have something to send.",
        labels=["share"],
    )
    for of in sorted({of for _, of in seen}):
        busy: dict[int, int] = defaultdict(int)
        for account in accounts:
            busy[account % of + 1] += 1
        for index in range(1, of + 1):
            workers_of.add_metric([f"{index}/{of}"], seen[index, of])
            work_of.add_metric([f"{index}/{of}"], busy[index])
    yield from (workers_of, work_of)


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
