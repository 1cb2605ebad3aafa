"""The messages of the sockets through a plain request, for pages that cannot open one."""

from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.models import User
from activity.live import messages


@never_cache
@require_safe
def live_state(request: HttpRequest) -> JsonResponse:
    """Return the messages for a page with `?runs=3,17`. Answers 401 without a login, not a redirect."""
    if not isinstance(request.user, User):
        return JsonResponse({"messages": []}, status=401)
    runs = messages.run_messages(
        request.user, messages.wanted_runs(request.GET.get("runs", "")), timezone.get_current_timezone()
    )
    return JsonResponse({"messages": [messages.unread_message(request.user), *runs]})
