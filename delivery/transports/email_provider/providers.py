"""The e-mail providers that anymail supports, and how each one differs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One of anymail's backends, and its name for the key."""

    name: str
    label: str
    key: str = "api_key"
    second_key: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    shows_pictures: bool = True  # shows pictures in the message, not only as attachments
    keeps_message_id: bool = False  # takes our Message-ID; others make their own, and some refuse ours


# Fields in which providers put their words about a failure.
WORDS = ("message", "Message", "ErrorMessage", "error", "description")
PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider(name="brevo", label="Brevo", shows_pictures=False),
        Provider(name="mailersend", label="MailerSend", key="api_token"),
        Provider(name="mailgun", label="Mailgun", keeps_message_id=True),
        Provider(name="mailjet", label="Mailjet", second_key="secret_key"),
        Provider(name="mandrill", label="Mandrill"),
        Provider(
            name="postmark",
            label="Postmark",
            key="server_token",
            headers=(("X-PM-KeepID", "true"),),
            keeps_message_id=True,
        ),
        Provider(name="resend", label="Resend"),
        Provider(name="sparkpost", label="SparkPost"),
    )
}
