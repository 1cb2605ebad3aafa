"""Addresses of the live pages' sockets."""

from django.urls import URLPattern

websocket_urlpatterns: list[URLPattern] = []
