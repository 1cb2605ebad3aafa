"""HTTP and WebSocket, served by Daphne."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import SessionMiddlewareStack
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
http = get_asgi_application()

# Models need Django set up first.
from activity.origin import SameOrigin  # noqa: E402
from activity.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": SameOrigin(SessionMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
