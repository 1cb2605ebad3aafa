from hypothesis import given
from hypothesis import strategies as st

from sandbox.account import HOUR, MINUTE, Account, Recent, State
from sandbox.behaviour import MAX_COUNTED, Behaviour


@given(
    gaps=st.lists(st.integers(0, 50), min_size=1, max_size=80),
    count=st.integers(1, 20),
    window=st.integers(1, 400),
)
def test_recent_counts_like_somebody_who_keeps_everything(gaps: list[int], count: int, window: int) -> None:
    recent, moments, now = Recent(400), [], 0
    for gap in gaps:
        now += gap
        recent.add(now)
        moments.append(now)
        inside = sum(1 for moment in moments if moment > now - window)
        assert recent.reaches(count, window, now) == (inside >= count)
        assert recent.count(window, now) == inside


def test_recent_keeps_no_more_than_a_limit_can_ask_for() -> None:
    recent = Recent(HOUR)
    for _ in range(MAX_COUNTED + 100):
        recent.add(1)
    assert recent.count(HOUR, 1) == MAX_COUNTED + 1


def test_the_message_above_the_hidden_limit_bans() -> None:
    account = Account("a", Behaviour(ban_above_per_minute=3))
    states = []
    for at in (0, 10, 20, MINUTE - 1):
        account.count(at)
        states.append(account.state)
    assert states == [State.WORKING] * 3 + [State.BANNED]


def test_a_window_that_slid_on_does_not_ban() -> None:
    account = Account("a", Behaviour(ban_above_per_minute=3, ban_above_per_hour=6))
    for at in range(0, 6 * MINUTE, MINUTE // 3):
        account.count(at)
        if account.state is State.BANNED:
            break
    assert at == 6 * MINUTE // 3  # the seventh within the hour


def test_a_lifted_ban_is_not_back_with_the_next_message() -> None:
    account = Account("a", Behaviour(ban_above_per_minute=1))
    account.count(0)
    account.count(1)
    account.become(State.WORKING)
    account.count(2)
    assert account.state is State.WORKING


def test_a_seed_throws_the_same_dice() -> None:
    first, second = (Account(name, Behaviour(seed=5)) for name in "ab")
    assert [first.dice.random() for _ in range(5)] == [second.dice.random() for _ in range(5)]
    first.behave(Behaviour(seed=5, cut=1.0))
    assert first.dice.random() == second.dice.random()


def test_the_first_code_holds_a_minute_and_five_more_hold_twenty_seconds() -> None:
    account = Account("a", Behaviour())
    account.become(State.SCAN_QR_CODE)
    codes = [account.pairing_code(now) for now in range(1000, 161_000, 1000)]
    assert codes[0] is not None
    assert codes[0][1] == 60_000
    assert len({code for code, _ in filter(None, codes)}) == 6
    assert account.state_at(160_999) is State.SCAN_QR_CODE
    assert account.state_at(161_000) is State.STOPPED


def test_asking_again_starts_pairing_over() -> None:
    account = Account("a", Behaviour())
    account.become(State.STOPPED)
    first = account.pairing_code(0)
    again = account.pairing_code(500_000)
    assert first is not None
    assert again is not None
    assert again[1] == 60_000
    assert first[0] != again[0]


def test_a_connected_account_has_no_code() -> None:
    assert Account("a", Behaviour()).pairing_code(0) is None
