"""Addresses of the live pages' sockets."""

from django.urls import URLPattern, path, re_path

from activity.live.consumers import MyConsumer, RunConsumer
from activity.live.origin import Refusal

websocket_urlpatterns: list[URLPattern] = [
    path("ws/me/", MyConsumer.as_asgi()),
    path("ws/runs/<int:run_id>/", RunConsumer.as_asgi()),
    re_path("", Refusal.as_asgi()),
]
