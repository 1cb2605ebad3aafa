"""The messages of the sockets by a plain request, for pages that cannot open one."""

from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.models import User
from activity import live


@never_cache
@require_safe
def live_state(request: HttpRequest) -> JsonResponse:
    """What a page that shows `?runs=3,17` has to know. Without a login 401: a script follows no redirect."""
    if not isinstance(request.user, User):
        return JsonResponse({"messages": []}, status=401)
    runs = live.run_messages(
        request.user, live.wanted_runs(request.GET.get("runs", "")), timezone.get_current_timezone()
    )
    return JsonResponse({"messages": [live.unread_message(request.user), *runs]})
