"""The manifest with which a browser installs Paceline as an app."""

from django.contrib.staticfiles import finders
from django.test import Client

from activity.pages.app_manifest import ICONS


def test_a_browser_can_install_it_without_a_login(client: Client) -> None:
    answer = client.get("/app.webmanifest")
    assert answer["Content-Type"] == "application/manifest+json"
    said = answer.json()
    assert (said["start_url"], said["display"]) == ("/", "standalone")
    assert {icon["sizes"] for icon in said["icons"]} == {"192x192", "512x512"}


def test_its_icons_exist() -> None:
    assert all(finders.find(path) for path, _, _ in ICONS)


def test_every_page_names_it(client: Client, db: None) -> None:
    assert '<link rel="manifest" href="/app.webmanifest">' in client.get("/login/").content.decode()
