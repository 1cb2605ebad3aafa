"""The pages where a person says how notifications reach them outside of Paceline."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import posted, user_of
from accounts.models import Role, TeamMate, User
from accounts.roles import owners_for
from notices import mail, manage
from notices.manage import BadAddressError
from notices.models import Follow, Notice, NoticeAddress
from notices.outside.services import names
from notices.pages.forms import AddressForm, ChoiceForm, CodeForm, HoursForm, said, told
from notices.preferences import preferences_of, save, zone_of

SHOWN = 10  # notices of the log


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def overview(request: HttpRequest) -> HttpResponse:
    """Show the addresses and the hours; add an address."""
    form = AddressForm(posted(request))
    if form.is_valid() and (made := _added(request, form)):
        if made.confirmed_at is None:
            messages.success(request, "A code was sent to this mailbox. Enter it below.")
        else:
            messages.success(request, "Added. Send a test to see that it arrives.")
        return redirect("notices:settings")
    return _overview(request, form=form)


def _added(request: HttpRequest, form: AddressForm) -> NoticeAddress | None:
    chosen = form.cleaned_data
    try:
        return manage.add(user_of(request), chosen["address"], kinds=chosen["kinds"], rhythm=chosen["rhythm"])
    except BadAddressError as error:
        form.add_error(error.field, str(error))
        return None


@login_required
@require_POST
def hours(request: HttpRequest) -> HttpResponse:
    """Save the hours, the teams and who is told next."""
    form = _hours_form(user_of(request), request.POST)
    if not form.is_valid():
        return _overview(request, hours=form)
    save(user_of(request), form.wishes)
    messages.success(request, "Saved.")
    return redirect("notices:settings")


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def address_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one address with what was sent there last; change what it is told."""
    address = _own(request, pk)
    form = ChoiceForm(posted(request), initial=told(address))
    if form.is_valid():
        chosen = form.cleaned_data
        manage.change(address, kinds=chosen["kinds"], rhythm=chosen["rhythm"], by=user_of(request))
        messages.success(request, "Saved.")
        return redirect("notices:settings")
    log = Notice.objects.filter(address=address).order_by("-pk")[:SHOWN]
    return render(request, "notices/address.html", {"address": address, "form": form, "log": log})


@login_required
@require_POST
def confirm(request: HttpRequest, pk: int) -> HttpResponse:
    """Confirm a mailbox with its code."""
    address, form = _own(request, pk), CodeForm(request.POST)
    if form.is_valid() and manage.confirm(address, form.cleaned_data["code"], by=user_of(request)):
        messages.success(request, f"{address} is confirmed.")
    else:
        messages.error(request, "This is not the code, or it is too old. Send another code, or try again.")
    return redirect("notices:settings")


@login_required
@require_POST
def act(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Send a test or another code, or switch the address on again."""
    address, by = _own(request, pk), user_of(request)
    try:
        match verb:
            case "test":
                manage.test(address, by=by)
                messages.success(request, "A test is on its way. Load this page again to see how it went.")
            case "code":
                manage.send_code(address, by=by)
                messages.success(request, "Another code was sent.")
            case "on":
                manage.switch_on(address, by=by)
                messages.success(request, "Switched on. It is told what happens from now on.")
            case _:
                raise Http404
    except BadAddressError as error:
        messages.error(request, str(error))
    return redirect("notices:settings")


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, then delete an address."""
    address = _own(request, pk)
    if request.method == "POST":
        manage.delete(address, by=user_of(request))
        messages.success(request, "Deleted. Nothing more is sent there.")
        return redirect("notices:settings")
    return render(request, "notices/delete.html", {"address": address, "back": reverse("notices:settings")})


def _own(request: HttpRequest, pk: int) -> NoticeAddress:
    """Return an address of the person who asks; staff too change only their own here."""
    return get_object_or_404(NoticeAddress, pk=pk, person=user_of(request))


def _hours_form(user: User, data: QueryDict | None = None) -> HoursForm:
    follows = Follow.objects.filter(person=user).values_list("owner", flat=True)
    return HoursForm(
        data,
        initial=said(preferences_of(user), list(follows)),
        teams=list(User.objects.filter(mates__mate=user, is_active=True).order_by("username")),
        mates=_deciding_mates(user),
        usual=settings.ESCALATE_AFTER_MINUTES,
    )


def _deciding_mates(owner: User) -> list[User]:
    """Return the active team members who may decide about the owner's runs."""
    mates = TeamMate.objects.filter(owner=owner, mate__is_active=True).select_related("mate")
    people = [each.mate for each in mates.order_by("mate__username")]
    return [person for person in people if owners_for(person, Role.SEND).filter(pk=owner.pk).exists()]


def _overview(
    request: HttpRequest, *, form: AddressForm | None = None, hours: HoursForm | None = None
) -> HttpResponse:
    user = user_of(request)
    addresses = NoticeAddress.objects.filter(person=user).order_by("pk")
    context = {
        "addresses": addresses,
        "form": form or AddressForm(),
        "hours": hours or _hours_form(user),
        "code": CodeForm(auto_id="code-%s"),
        "mail_is_set": mail.is_set(),
        "services": names(),
        "zone": zone_of(user),
        "full": len(addresses) >= manage.MOST,
        "most": manage.MOST,
        "escalates": settings.ESCALATE_AFTER_MINUTES,
    }
    return render(request, "notices/settings.html", context)
