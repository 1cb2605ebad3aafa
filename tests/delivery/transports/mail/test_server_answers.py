"""The meanings of a mail server's answers, as a table."""

import pytest

from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    Outcome,
    RateLimited,
    Rejected,
    ServerError,
    TryAgain,
    Unknown,
    Unreachable,
)
from delivery.transports.mail.server_answers import Step, cut, outcome_of

TABLE: list[tuple[Step, str, type[Outcome]]] = [
    # Asked for less, by whatever a server likes to say it with.
    (Step.CONNECT, "421 4.7.0 too many connections", RateLimited),
    (Step.SENDER, "450 4.7.1 Error: too much mail from 192.0.2.1", RateLimited),
    (Step.RECIPIENT, "450 4.7.1 Error: too many recipients from 192.0.2.1", RateLimited),
    (Step.RECIPIENT, "452 too many recipients", RateLimited),
    (Step.RECIPIENT, "421 4.7.0 Try again later", RateLimited),
    (Step.SENDER, "450 4.7.1 Try again later", RateLimited),
    (Step.DATA, "421 4.7.28 Gmail has detected an unusual rate of unsolicited mail", RateLimited),
    (Step.RECIPIENT, "451 4.7.650 The mail server is temporarily rate limited", RateLimited),
    # The server itself is in trouble.
    (Step.CONNECT, "421 4.3.2 Service not available", ServerError),
    (Step.CONNECT, "454 4.3.0 TLS not available", ServerError),
    (Step.SENDER, "452 4.3.1 Insufficient system storage", ServerError),
    (Step.SENDER, "451 Local error in processing", ServerError),
    (Step.RECIPIENT, "421 Closing transmission channel", ServerError),
    (Step.DATA, "451 4.3.0 Error: queue file write error", ServerError),
    (Step.DATA, "421 4.3.2 Shutting down", ServerError),
    # Later, but only this recipient is meant.
    (Step.RECIPIENT, "450 4.2.0 Greylisted", TryAgain),
    (Step.RECIPIENT, "450 4.2.0 <a@b.example>: Recipient address rejected: Greylisted", TryAgain),
    (Step.RECIPIENT, "451 4.7.1 Greylisted", TryAgain),
    (Step.RECIPIENT, "451 Temporarily deferred, gray listing in action", TryAgain),
    (Step.RECIPIENT, "421 4.7.1 You are greylisted, come back later", TryAgain),
    (Step.RECIPIENT, "450 4.1.2 Domain not found", TryAgain),
    (Step.RECIPIENT, "451 4.4.1 No answer from the host of the recipient", TryAgain),
    (Step.RECIPIENT, "450", TryAgain),
    (Step.RECIPIENT, "452 Mailbox over quota", TryAgain),
    (Step.RECIPIENT, "452 Mailbox size limit exceeded", TryAgain),
    (Step.DATA, "450 Disk quota limit of the user reached", TryAgain),
    (Step.DATA, "451 4.7.1 Service unavailable, try again later", TryAgain),
    (Step.RECIPIENT, "450 4.2.1 Mailbox busy", TryAgain),
    (Step.RECIPIENT, "452 4.2.2 Mailbox full", TryAgain),
    (Step.DATA, "432 4.3.2 Not now", ServerError),
    # The account.
    (Step.CONNECT, "554 5.7.1 Your address is on our list", AccountBlocked),
    (Step.LOGIN, "535 5.7.8 Bad credentials", AccountBlocked),
    (Step.LOGIN, "534 5.7.9 Application-specific password required", AccountBlocked),
    (Step.LOGIN, "454 4.7.0 Temporary authentication failure", NotConnected),
    (Step.SENDER, "530 5.7.0 Authentication required", AccountBlocked),
    (Step.SENDER, "553 5.7.1 Sender address rejected: not owned by user", AccountBlocked),
    (Step.RECIPIENT, "530 5.7.0 Must issue a STARTTLS command first", AccountBlocked),
    # The account has sent too much, though the code says for good.
    (Step.DATA, "550 5.4.5 Daily user sending quota exceeded. For more information go to", RateLimited),
    (Step.RECIPIENT, "550 5.7.1 Hourly sending limit reached", RateLimited),
    (Step.DATA, "554 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException", RateLimited),
    (Step.RECIPIENT, "554 Too many messages from your account", RateLimited),
    (Step.RECIPIENT, "552 5.2.2 Mailbox over its daily quota limit", Rejected),
    # This message or this recipient, for good.
    (Step.SENDER, "552 5.3.4 Message size exceeds fixed limit", Rejected),
    (Step.RECIPIENT, "550 5.1.1 No such user", Rejected),
    (Step.RECIPIENT, "554 5.7.1 Relay access denied", Rejected),
    (Step.DATA, "554 5.7.1 Message looks like spam", Rejected),
    # Nobody can read it.
    (Step.CONNECT, "200 HTTP/1.1 OK", Unreachable),
    (Step.RECIPIENT, "-1 ", ServerError),
    (Step.DATA, "-1 ", Unknown),
    (Step.DATA, "354 Go on", Unknown),
]


@pytest.mark.parametrize(("step", "reply", "means"), TABLE)
def test_what_each_reply_means(step: Step, reply: str, means: type[Outcome]) -> None:
    code, _, words = reply.partition(" ")
    assert type(outcome_of(step, int(code), words)) is means


def test_a_refusal_has_the_code_and_the_words_of_the_server() -> None:
    assert outcome_of(Step.RECIPIENT, 550, "5.1.1 No such user") == Rejected(
        reason="the mail server answered 550: 5.1.1 No such user", code="550 5.1.1"
    )
    assert outcome_of(Step.RECIPIENT, 550, "") == Rejected(reason="the mail server answered 550", code="550")


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Greylisted, please try again in 300 seconds", 300),
        ("4.7.1 come back in 5 minutes", 300),
        ("Greylisted for 60 seconds", 60),
        ("in 1 second", 1),
        ("in a while", None),
    ],
)
def test_a_wait_that_the_server_names_is_believed(words: str, seconds: float | None) -> None:
    outcome = outcome_of(Step.RECIPIENT, 451, words)
    assert isinstance(outcome, TryAgain)
    assert outcome.after == seconds


def test_only_a_message_that_was_on_its_way_is_in_doubt() -> None:
    means = {step: type(cut(step, reason="gone")) for step in Step}
    assert means == {
        Step.CONNECT: Unreachable,
        Step.LOGIN: Unreachable,
        Step.SENDER: ServerError,
        Step.RECIPIENT: ServerError,
        Step.DATA: Unknown,
    }


def test_a_server_that_takes_nothing_from_anybody_says_so() -> None:
    for step, reply in ((Step.CONNECT, "4.3.2 Service not available"), (Step.DATA, "4.3.2 Shutting down")):
        outcome = outcome_of(step, 421, reply)
        assert isinstance(outcome, ServerError)
        assert outcome.everybody
