from benchmarks.receivers.every_kind import Receiver
from benchmarks.transports import accounts
from delivery.transports import kinds


def test_every_kind_is_measured() -> None:
    assert set(accounts(Receiver(http=1, smtp=2))) == set(kinds())
