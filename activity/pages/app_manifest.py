"""The manifest of the app: with it a browser installs Paceline on a phone or a desktop."""

from django.http import HttpRequest, JsonResponse
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

BLUE, PAPER = "#2f4fc9", "#fbfaf9"
ICONS = (
    ("icons/app-192.png", "192x192", "any"),
    ("icons/app-512.png", "512x512", "any"),
    ("icons/app-maskable-512.png", "512x512", "maskable"),
)


@require_safe
@cache_control(public=True, max_age=3600)
def manifest(_request: HttpRequest) -> JsonResponse:
    """Return the manifest. A view and no file, since the names of static files change with their content."""
    icons = [
        {"src": static(path), "sizes": sizes, "type": "image/png", "purpose": purpose}
        for path, sizes, purpose in ICONS
    ]
    shortcuts = [("New reminder", "reminders:new"), ("Calendar", "calendar:calendar")]
    said = {
        "id": "/",
        "name": "Paceline",
        "short_name": "Paceline",
        "description": "Sends reminders at a human pace.",
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": PAPER,
        "theme_color": BLUE,
        "icons": icons,
        "shortcuts": [{"name": name, "url": reverse(url)} for name, url in shortcuts],
    }
    return JsonResponse(said, content_type="application/manifest+json")
