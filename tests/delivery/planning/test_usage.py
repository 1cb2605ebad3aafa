from datetime import UTC, datetime, timedelta

import pytest

from delivery.planning.usage import seconds_per_message

NOON = datetime(2026, 3, 11, 12, tzinfo=UTC)


def sends(count: int, *, apart: float, took_ms: int) -> list[tuple[datetime, int]]:
    return [(NOON + timedelta(seconds=number * apart), took_ms) for number in range(count)]


def test_a_slow_service_sets_the_pace() -> None:
    assert seconds_per_message(sends(50, apart=2, took_ms=5500), in_flight=3) == pytest.approx(2)


def test_where_the_service_was_idle_the_limits_set_it_and_nothing_is_learned() -> None:
    assert seconds_per_message(sends(50, apart=2, took_ms=120), in_flight=3) == 0


def test_a_few_messages_teach_nothing() -> None:
    assert seconds_per_message(sends(20, apart=2, took_ms=5500), in_flight=3) == 0


def test_the_silence_between_two_runs_does_not_count() -> None:
    evening = [(at + timedelta(hours=6), took) for at, took in sends(25, apart=2, took_ms=5500)]
    both = sends(25, apart=2, took_ms=5500) + evening
    assert seconds_per_message(both, in_flight=3) == pytest.approx(2)
