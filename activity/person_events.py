"""Events for the pages that one person has open: new notifications, and lost access.

Each event is delivered at most once, and a lost event does no harm: pages read the state again when they connect.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from redis import RedisError

log = structlog.get_logger(__name__)

# In a separate thread: nobody waits for it, and it works when the caller's thread has an event loop.
_messenger = ThreadPoolExecutor(max_workers=1, thread_name_prefix="messenger")


def person_group(user_id: int) -> str:
    return f"person-{user_id}"


def send_event(user_id: int, kind: str, **facts: Any) -> None:
    """Send an event of `kind` (`notification.made`, `access.changed` ...) to the person's open pages soon."""
    _messenger.submit(_send, user_id, {"type": kind, **facts})


def _send(user_id: int, event: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        async_to_sync(layer.group_send)(person_group(user_id), event)
    except (RedisError, OSError):
        log.warning("pages_not_reached", person=user_id, kind=event["type"])
