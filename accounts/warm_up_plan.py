"""Warm-up: a new account's daily cap, which grows after every day without trouble (SPEC P11). Pure."""

from datetime import timedelta

from accounts.profiles import PROFILES, WarmUp

TROUBLE_SHARE = 0.05  # share of a day's messages that failed; above it the day had trouble


def plan(*, profile: str, start: int | None, step: int | None, ceiling: int | None) -> WarmUp | None:
    """Return the account's own plan, else its profile's, else None."""
    if start is not None and step is not None and ceiling is not None:
        return WarmUp(start=start, step=step, ceiling=ceiling)
    return PROFILES[profile].warm_up


def begins_again(before: WarmUp | None, after: WarmUp | None) -> bool:
    """Return whether a changed plan starts at its first day. A new ceiling alone does not."""
    return after is not None and (before is None or (before.start, before.step) != (after.start, after.step))


def cap(plan: WarmUp, clean_days: int) -> int:
    """Return the messages per day after so many days without trouble."""
    return min(plan.ceiling, plan.start + plan.step * clean_days)


REST = timedelta(hours=72)  # without a message; services forget an account that is silent for so long


def after_rests(plan: WarmUp | None, clean_days: int, rests: int) -> int:
    """Return the days that still count after so many rests of 72 hours without a message: half of them each time.

    Days beyond those that reach the ceiling do not count.
    """
    if plan is None or rests <= 0:
        return clean_days
    enough = max(0, -(-(plan.ceiling - plan.start) // plan.step))
    return min(clean_days, enough) >> min(rests, 32)


def curve(plan: WarmUp, clean_days: int, *, most: int = 366) -> tuple[int, ...]:
    """Return the caps of today and the following days, if none has trouble, up to the ceiling."""
    left = max(0, plan.ceiling - cap(plan, clean_days))
    days = min(most, -(-left // plan.step) + 1)
    return tuple(cap(plan, clean_days + ahead) for ahead in range(days))


def is_clean(*, sent: int, failed: int, warned: int) -> bool:
    """Return whether a day counts: messages were sent, the service did not complain, and hardly any failed.

    `warned` is the number of answers that the account is too fast or blocked: one is enough. A day without messages
    proves nothing about what the account can send.
    """
    return sent > 0 and warned == 0 and failed <= TROUBLE_SHARE * (sent + failed)
