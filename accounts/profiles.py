"""Ready profiles: the limits that suit a kind of account (SPEC P12)."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileLimits:
    """The limits of a profile for one action. None leaves the value to the settings."""

    per_minute: int | None = None
    per_hour: int | None = None
    per_day: int | None = None
    per_24_hours: int | None = None
    per_7_days: int | None = None
    per_30_days: int | None = None
    new_per_day: int | None = None
    new_per_week: int | None = None
    gap_min: float | None = None
    gap_max: float | None = None
    batch_size: int | None = None
    batch_pause: float | None = None
    fixed_delay: bool = False  # FIXED_DELAY_SECONDS between two messages
    batches: bool = False  # BATCH_PAUSE_SECONDS after every BATCH_SIZE
    slow: bool = False  # the gap and the caps of OVERDUE_...


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """A daily limit that rises after each day without errors."""

    start: int
    step: int
    ceiling: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """The suggested delivery hours of a new reminder; the days as bits, Monday the lowest."""

    start_hour: int
    end_hour: int
    send_days: int


BUSINESS_HOURS = Hours(start_hour=9, end_hour=18, send_days=0b0011111)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A profile that a person can choose, with its limits.

    `before` are the limits that it had before version 0.3.0, where they were others: accounts of that time keep them.
    Whatever an account's own limits say, it leaves at least `shortest_gap` seconds between two messages.
    """

    key: str
    label: str
    about: str
    limits: Mapping[str, ProfileLimits]
    warm_up: WarmUp | None = None
    business_hours: bool = False
    on_time_first: bool = False
    channels: frozenset[str] = field(default_factory=frozenset)
    before: Mapping[str, ProfileLimits] = field(default_factory=dict)
    shortest_gap: float = 0.0
    longest_gap: float | None = None  # an account's own gap may not be longer
    subscribers: bool = False  # who gets its messages asked for them: nobody is new

    def limits_for(self, action: str, *, as_before: bool) -> ProfileLimits:
        """Return the limits of an account with this profile; with `as_before` those that it had before 0.3.0."""
        found = self.before.get(action) if as_before else None
        return found or self.limits.get(action, ProfileLimits())

    @property
    def hours(self) -> Hours | None:
        """Return the hours to suggest for a reminder sent by such an account, or None for those of the settings."""
        return BUSINESS_HOURS if self.business_hours else None


ACTIONS = ("message", "email", "connection_request", "inmail")
WHATSAPP = frozenset({"whatsapp"})
EMAIL = frozenset({"email"})

_PROFILES = (
    Profile(
        key="whatsapp_established",
        label="Established WhatsApp",
        about="A number that has been used for years and writes to groups that know it: 40 per minute, 2,000 per day, "
        "50 new people per day.",
        limits={"message": ProfileLimits(per_minute=40, per_day=2000, new_per_day=50)},
        before={"message": ProfileLimits(per_minute=40)},
        channels=WHATSAPP,
    ),
    Profile(
        key="whatsapp_careful",
        label="Careful WhatsApp",
        about="A new number, or one that writes to new people: 30 to 60 seconds between messages, with warm-up, "
        "20 new people per day.",
        limits={"message": ProfileLimits(gap_min=30, gap_max=60, new_per_day=20)},
        before={"message": ProfileLimits(gap_min=30, gap_max=60)},
        warm_up=WarmUp(start=20, step=30, ceiling=1000),
        channels=WHATSAPP,
    ),
    Profile(
        key="whatsapp_campaign",
        label="WhatsApp campaign",
        about="3 seconds between messages, with a break of 30 seconds after every 75, at most 1,000 per day.",
        limits={"message": ProfileLimits(per_minute=20, per_day=1000, fixed_delay=True, batches=True)},
        before={"message": ProfileLimits(per_minute=20, fixed_delay=True, batches=True)},
        shortest_gap=2.0,
        longest_gap=10.0,
        channels=WHATSAPP,
    ),
    Profile(
        key="email_business",
        label="Business e-mail",
        about="20 per day, 6 to 20 minutes between messages, Monday to Friday from 9 to 18.",
        limits={"email": ProfileLimits(per_day=20, gap_min=360, gap_max=1200)},
        before={"email": ProfileLimits(per_day=20, gap_min=300, gap_max=1200)},
        business_hours=True,
        channels=EMAIL,
    ),
    Profile(
        key="slow_sender",
        label="Slow sender",
        about="3 to 5 minutes between messages, at most 10 per hour and 50 per day; scheduled messages go first.",
        limits=dict.fromkeys(ACTIONS, ProfileLimits(slow=True)),
        on_time_first=True,
    ),
    Profile(
        key="email_newsletter",
        label="Newsletter e-mail",
        about="A well-known domain that writes to subscribers: 60 per minute, 10,000 per day.",
        limits={"email": ProfileLimits(per_minute=60, per_day=10_000)},
        subscribers=True,
        channels=EMAIL,
    ),
    Profile(
        key="linkedin",
        label="LinkedIn",
        about="20 invitations a day and 100 in 7 days, 50 messages and 20 InMails per day, 1 to 5 minutes apart.",
        limits={
            "connection_request": ProfileLimits(per_day=20, per_7_days=100, gap_min=60, gap_max=300),
            "message": ProfileLimits(per_day=50, gap_min=60, gap_max=300),
            "inmail": ProfileLimits(per_day=20, gap_min=60, gap_max=300),
        },
        before={"connection_request": ProfileLimits(per_day=20, gap_min=60, gap_max=300)},
        business_hours=True,
        channels=frozenset({"linkedin"}),
    ),
    Profile(
        key="matrix",
        label="Matrix",
        about="Rooms and people on a Matrix server: 20 per minute, 2,000 per day.",
        limits={"message": ProfileLimits(per_minute=20, per_day=2000)},
        channels=frozenset({"matrix"}),
    ),
)

PROFILES: Mapping[str, Profile] = {profile.key: profile for profile in _PROFILES}
DEFAULT_PROFILE = "whatsapp_careful"

# What is chosen beforehand for a new account: the safest profile of its channel.
PRESELECTED: Mapping[str, str] = {
    "whatsapp": DEFAULT_PROFILE,
    "email": "email_business",
    "linkedin": "linkedin",
    "matrix": "matrix",
}
