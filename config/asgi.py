"""The ASGI application: HTTP and WebSocket, served by Daphne."""

import os
import sys
import threading

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import SessionMiddlewareStack
from django import setup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
setup(set_prefix=False)

# Django must be set up before models are imported.
from django.conf import settings  # noqa: E402

from activity import heartbeats  # noqa: E402
from activity.live.origin import SameOrigin  # noqa: E402
from activity.live.routing import websocket_urlpatterns  # noqa: E402
from config.private_files import make_private  # noqa: E402
from config.web import open_files  # noqa: E402
from config.web.odd_requests import Handler  # noqa: E402
from delivery.apps import tell_of_networks  # noqa: E402
from delivery.file_addresses.serving import Files  # noqa: E402
from people.middleware import HoldSockets  # noqa: E402

tell_of_networks()
make_private(settings.MEDIA_ROOT)
if not settings.TESTING:  # tests that import this have a Redis of their own only later
    open_files.allow(settings.SOCKETS)
    threading.Thread(target=heartbeats.announce_media, name="media", daemon=True).start()

if "daphne.cli" in sys.modules:  # the program that serves this
    from config.web import slow_readers

    sys.modules["daphne.cli"].CommandLineInterface.server_class = slow_readers.PatientServer

application = ProtocolTypeRouter(
    {
        "http": Files(otherwise=Handler()),
        "websocket": SameOrigin(SessionMiddlewareStack(HoldSockets(URLRouter(websocket_urlpatterns)))),
    }
)
