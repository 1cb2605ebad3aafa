"""One account of the sandbox: its state, random numbers, latest messages, new chats and pairing codes."""

from collections import deque
from enum import StrEnum
from random import Random
from secrets import choice

from sandbox.behaviour import MAX_COUNTED, Behaviour
from sandbox.reports import Webhook

MINUTE = 60_000
HOUR = 3_600_000
FIRST_CODE_MS, NEXT_CODE_MS = 60_000, 20_000
PAIRING_MS = FIRST_CODE_MS + 5 * NEXT_CODE_MS
TYPING_MS = 25_000
TYPEABLE = "ABCDEFGHJKLMNPQRSTVWXYZ123456789"  # without letters that look like others


class State(StrEnum):
    """The states that a gateway reports for an account."""

    WORKING = "WORKING"
    SCAN_QR_CODE = "SCAN_QR_CODE"
    STOPPED = "STOPPED"
    BANNED = "BANNED"


class Recent:
    """The times of the last events, oldest first, as many as a limit can ask for."""

    __slots__ = ("_keep_ms", "_times")

    def __init__(self, keep_ms: int) -> None:
        self._keep_ms = keep_ms
        self._times: deque[int] = deque(maxlen=MAX_COUNTED + 1)

    def add(self, at: int) -> None:
        times = self._times
        times.append(at)
        while times[0] <= at - self._keep_ms:
            times.popleft()

    def clear(self) -> None:
        self._times.clear()

    def reaches(self, count: int, window_ms: int, now: int) -> bool:
        """Return whether at least `count` events lie in the window that ends now."""
        times = self._times
        return len(times) >= count and times[-count] > now - window_ms

    def room_at(self, limit: int, window_ms: int) -> int:
        """Return when one more event fits under a limit that is reached."""
        return self._times[-limit] + window_ms

    def count(self, window_ms: int, now: int) -> int:
        """Return how many events lie in the window that ends now. Walks over them: for pages, not for requests."""
        return sum(1 for at in self._times if at > now - window_ms)


class NewChats:
    """The new chats of one account. A cycle begins with the first look or message after the one before it."""

    def __init__(self) -> None:
        self._since = 0
        self._used = 0
        self._locked_until = 0

    def allow(self, behaviour: Behaviour, at: int) -> bool:
        """Count one more new chat, if the quota has room for it; return whether it has."""
        self._begin(behaviour, at)
        if behaviour.new_chats and self._used >= behaviour.new_chats:
            return False
        self._used += 1
        return True

    def lock(self, behaviour: Behaviour, at: int) -> int:
        """Lock new chats, unless they are locked; return until when."""
        if self._locked_until <= at:
            self._locked_until = at + behaviour.lock_ms
        return self._locked_until

    def told(self, behaviour: Behaviour, at: int) -> dict[str, int]:
        """Return what the account is told when it asks."""
        self._begin(behaviour, at)
        locked = behaviour.lock_first_contacts and self._locked_until > at and not behaviour.hides_lock
        return {
            "total": behaviour.new_chats,
            "used": self._used,
            "since": self._since,
            "until": self._since + behaviour.new_chats_ms,
            "locked_until": self._locked_until if locked else 0,
        }

    def _begin(self, behaviour: Behaviour, at: int) -> None:
        if at >= self._since + behaviour.new_chats_ms:
            self._since, self._used = at, 0


class Account:
    """The gateway's knowledge of one account."""

    def __init__(self, name: str, behaviour: Behaviour) -> None:
        self.name = name
        self.title = name
        self.token: bytes | None = None
        self.state = State.WORKING
        self.paired = True
        self.webhook: Webhook | None = None
        self.told = State.WORKING  # the state that was reported last
        self.received = Recent(HOUR)
        self.accepted = Recent(MINUTE)
        self.delivered = 0
        self.last_at = 0
        self.typing: tuple[str, int] | None = None  # in which chat, and since when
        self.new_chats = NewChats()
        self.behaviour = behaviour
        self.dice = Random(behaviour.seed or None)
        self._pairing_since: int | None = None

    def behave(self, behaviour: Behaviour) -> None:
        """Set another behaviour; the random numbers start again where the seed differs."""
        if behaviour.seed != self.behaviour.seed:
            self.dice = Random(behaviour.seed or None)
        self.behaviour = behaviour

    def become(self, state: State) -> None:
        """Set the state by hand. Ending a ban also clears the counts that led to it, or it would be back at once."""
        if self.state is State.BANNED and state is not State.BANNED:
            self.received.clear()
        self.state = state
        self._pairing_since = None
        if state in {State.WORKING, State.SCAN_QR_CODE}:
            self.paired = state is State.WORKING

    def start(self) -> None:
        """Connect, or ask for a code to be scanned where no phone is paired; a ban stays."""
        if self.state is State.STOPPED:
            self.become(State.WORKING if self.paired else State.SCAN_QR_CODE)

    def log_out(self) -> None:
        """Forget the phone; a ban stays."""
        if self.state is not State.BANNED:
            self.become(State.STOPPED)
        self.paired = False

    def types_in(self, to: str, now: int) -> bool:
        """Return whether the account is typing in a chat; a phone shows that for some seconds at most."""
        return self.typing is not None and self.typing[0] == to and now - self.typing[1] < TYPING_MS

    def latency(self) -> float:
        """Return the seconds to wait before the next answer."""
        jitter = self.behaviour.jitter_ms
        return (self.behaviour.latency_ms + (self.dice.random() * jitter if jitter else 0)) / 1000

    def count(self, at: int) -> None:
        """Count a received message, and ban the account if that was one too many."""
        self.received.add(at)
        minute, hour = self.behaviour.ban_above_per_minute, self.behaviour.ban_above_per_hour
        if (minute and self.received.reaches(minute + 1, MINUTE, at)) or (
            hour and self.received.reaches(hour + 1, HOUR, at)
        ):
            self.become(State.BANNED)

    def state_at(self, now: int) -> State:
        """Return the state, after pairing codes that nobody scanned have expired."""
        if self._pairing_since is not None and now - self._pairing_since >= PAIRING_MS:
            self.become(State.STOPPED)
        return self.state

    def pairing_code(self, now: int) -> tuple[str, int] | None:
        """Return the code to scan now and for how many milliseconds more; None when the account needs none.

        The first code holds for a minute, the next ones for 20 s each; after six of them the account is
        stopped, and asking again starts over.
        """
        if not self._pairs(now):
            return None
        since = self._pairing_since or now
        age = now - since - FIRST_CODE_MS
        number, left = (1, -age) if age < 0 else (2 + age // NEXT_CODE_MS, NEXT_CODE_MS - age % NEXT_CODE_MS)
        return f"sandbox:{self.name}:{since:x}:{number}", left

    def typed_code(self, now: int) -> str | None:
        """Return a code to type into the phone; None when the account needs none."""
        if not self._pairs(now):
            return None
        letters = "".join(choice(TYPEABLE) for _ in range(8))
        return f"{letters[:4]}-{letters[4:]}"

    def _pairs(self, now: int) -> bool:
        """Return whether the account waits for its phone; asking makes a stopped one wait."""
        if self.state_at(now) not in {State.SCAN_QR_CODE, State.STOPPED}:
            return False
        if self._pairing_since is None:
            self.state, self.paired, self._pairing_since = State.SCAN_QR_CODE, False, now
        return True
