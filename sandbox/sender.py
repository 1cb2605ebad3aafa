"""Sends reports as signed webhooks, a few times each, as gateways do.

The signature is the hex HMAC-SHA256 of `<timestamp>.<body>`: the time is signed too, so an old report cannot be
sent again as a new one.
"""

import asyncio
import hmac
import time

import aiohttp

from sandbox.reports import Report, Reports

PAUSES = (0.5, 2.0, 8.0, 30.0)  # seconds before each further attempt
TIMEOUT = aiohttp.ClientTimeout(total=10)
SIDE_BY_SIDE = 4


async def send_reports(reports: Reports) -> None:
    """Send the reports that come in, until cancelled."""
    session = aiohttp.ClientSession(timeout=TIMEOUT, cookie_jar=aiohttp.DummyCookieJar())
    async with session, asyncio.TaskGroup() as group:
        for _ in range(SIDE_BY_SIDE):
            group.create_task(_work(reports, session))


async def _work(reports: Reports, session: aiohttp.ClientSession) -> None:
    while True:
        report = await reports.next()
        for pause in (*PAUSES, None):
            if await _taken(report, session) or pause is None:
                break
            await asyncio.sleep(pause)


async def _taken(report: Report, session: aiohttp.ClientSession) -> bool:
    """Return whether sending again is useless: the report was taken, or refused for good."""
    try:
        async with session.post(
            report.webhook.url, data=report.body, headers=signed(report), allow_redirects=False
        ) as answer:
            return answer.status < 500 and answer.status != 429
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return False


def signed(report: Report) -> dict[str, str]:
    timestamp = str(time.time_ns() // 1_000_000)
    digest = hmac.new(report.webhook.secret.encode(), timestamp.encode() + b"." + report.body, "sha256")
    return {
        "Content-Type": "application/json",
        "X-Sandbox-Timestamp": timestamp,
        "X-Sandbox-Signature": f"sha256={digest.hexdigest()}",
    }
