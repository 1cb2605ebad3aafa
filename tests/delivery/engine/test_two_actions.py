"""An account that sends runs of two actions at once: each has limits of its own."""

import pytest
from redis import Redis

from delivery.engine import pump
from delivery.models import Run
from tests.delivery.stage import Stage, counted
from tests.factories import LimitFactory

pytestmark = pytest.mark.django_db(transaction=True)

OPEN = 1e15  # as limiter.lua has it: the score of a permit whose message has not landed


def test_messages_of_one_action_never_count_against_the_other(stage: Stage, redis: Redis) -> None:
    """The limiter hears of the second action while those of the first are under way."""
    account = stage.account()
    LimitFactory.create(account=account, action="inmail", per_minute=60_000, new_per_week=50)
    stage.behave(account, latency_ms=500)
    first, second = stage.fire(account, to=3, priority=5), stage.fire(account, to=2)
    Run.objects.filter(pk=second.pk).update(action="inmail")
    pump.pump(account.pk)
    assert [counted(first), counted(second)] == [{"sent": 3}, {"sent": 2}]
    state = f"paceline:{{{account.pk}}}:inmail"
    assert redis.zcount(f"{state}:log", OPEN, "+inf") == 0
    assert redis.hget(f"{state}:state", "rights") == b"{}"
