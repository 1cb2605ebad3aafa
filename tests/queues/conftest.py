"""The stage of the engine's tests, for queues."""

from tests.delivery.conftest import gateway, quick, stage

__all__ = ["gateway", "quick", "stage"]
