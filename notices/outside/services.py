"""The chat services that a person may name, by the beginning of their addresses.

apprise knows far more. Left out are those that run programs, write to files, the system's log, its desktop or its
modems, that hold a connection open, that send by another mail server, or that cost money per message. Each service
here speaks HTTP and nothing else. docs/notifications.md names them: a test compares.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """A service: its name for people, and the module of apprise that speaks to it."""

    name: str
    module: str
    own_host: bool = False  # the address names a server, instead of the service's only one


_SLACK = Service("Slack", "slack")
_WEBEX = Service("Webex", "webexteams")
_TEAMS = Service("Microsoft Teams", "workflows")
_SIMPLEPUSH = Service("Simplepush", "simplepush")

SERVICES: Mapping[str, Service] = {
    "slack": _SLACK,
    "tgram": Service("Telegram", "telegram"),
    "matrix": Service("Matrix", "matrix", own_host=True),
    "matrixs": Service("Matrix", "matrix", own_host=True),
    "ntfy": Service("ntfy", "ntfy", own_host=True),
    "ntfys": Service("ntfy", "ntfy", own_host=True),
    "discord": Service("Discord", "discord"),
    "workflow": _TEAMS,
    "workflows": _TEAMS,
    "gchat": Service("Google Chat", "google_chat"),
    "mmost": Service("Mattermost", "mattermost", own_host=True),
    "mmosts": Service("Mattermost", "mattermost", own_host=True),
    "rocket": Service("Rocket.Chat", "rocketchat", own_host=True),
    "rockets": Service("Rocket.Chat", "rocketchat", own_host=True),
    "nctalk": Service("Nextcloud Talk", "nextcloudtalk", own_host=True),
    "nctalks": Service("Nextcloud Talk", "nextcloudtalk", own_host=True),
    "webex": _WEBEX,
    "wxteams": _WEBEX,
    "zulip": Service("Zulip", "zulip"),
    "gotify": Service("Gotify", "gotify", own_host=True),
    "gotifys": Service("Gotify", "gotify", own_host=True),
    "pover": Service("Pushover", "pushover"),
    "pbul": Service("Pushbullet", "pushbullet"),
    "spush": _SIMPLEPUSH,
    "simplepush": _SIMPLEPUSH,
    "bark": Service("Bark", "bark", own_host=True),
    "barks": Service("Bark", "bark", own_host=True),
    "signal": Service("Signal", "signal_api", own_host=True),
    "signals": Service("Signal", "signal_api", own_host=True),
    "threema": Service("Threema", "threema"),
    "line": Service("LINE", "line"),
    "lark": Service("Lark", "lark"),
    "feishu": Service("Feishu", "feishu"),
    "dingtalk": Service("DingTalk", "dingtalk"),
    "hassio": Service("Home Assistant", "home_assistant", own_host=True),
    "hassios": Service("Home Assistant", "home_assistant", own_host=True),
    "pagerduty": Service("PagerDuty", "pagerduty"),
    "opsgenie": Service("Opsgenie", "opsgenie"),
    "json": Service("JSON", "custom_json", own_host=True),
    "jsons": Service("JSON", "custom_json", own_host=True),
}


def service_of(address: str) -> Service | None:
    """Return the service that an address belongs to, or None where it is not one of ours."""
    beginning, found, _ = address.partition("://")
    return SERVICES.get(beginning.lower()) if found else None


def names() -> list[str]:
    return list(dict.fromkeys(service.name for service in SERVICES.values()))
