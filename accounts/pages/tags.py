"""The pages of tags: the list, one tag, and adding a tag to all recipients that a filter finds."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from accounts.access import posted, seen, touched, user_of
from accounts.models import Role, Tag
from accounts.pages.recipient_forms import MergeForm, TagAllForm, TagForm
from accounts.paging import at_most_shown, page_of
from accounts.recipients import tags
from accounts.recipients.filters import RecipientFilter
from accounts.roles import may_touch, visible

TYPED_ABOVE = 100  # recipients: then a click alone does not delete


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def tag_list(request: HttpRequest) -> HttpResponse:
    form = TagForm(posted(request))
    if form.is_valid():
        try:
            tag = tags.create(user_of(request), form.cleaned_data["name"])
        except tags.TagError as error:
            form.add_error("name", str(error))
        else:
            messages.success(request, f"Tag “{tag}” was created. Add it to people in the list of recipients.")
            return redirect("recipients:tags")
    rows = visible(Tag.objects.select_related("owner"), user_of(request))
    page = page_of(tags.with_sizes(rows), request.GET, by="name")
    tags.show_sizes(page.rows)
    return render(request, "recipients/tags.html", {"page": page, "form": form})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def tag_page(request: HttpRequest, pk: int) -> HttpResponse:
    tag = seen(Tag.objects.select_related("owner"), request, pk)
    old_name, trouble = tag.name, ""
    if request.method == "POST":
        touched(Tag.objects.all(), request, pk, Role.WRITE)
        try:
            return _change(request, tag)
        except tags.TagError as error:
            trouble = str(error)
    size = tags.size(tag)
    context = {
        "tag": tag,
        "name": old_name,
        "size": size,
        "typed": size > TYPED_ABOVE,
        "reminders": tag.reminders.filter(archived_at=None).order_by("-id")[:20],
        "rename": TagForm(initial={"name": old_name}),
        "merge": MergeForm(tag=tag),
        "may_touch": may_touch(tag, request.user, Role.WRITE),
        "trouble": trouble,
    }
    return render(request, "recipients/tag.html", context)


def _change(request: HttpRequest, tag: Tag) -> HttpResponse:
    user, name = user_of(request), tag.name
    match request.POST.get("do"):
        case "rename":
            tags.rename(tag, request.POST.get("name", ""), by=user)
            messages.success(request, f"Tag “{name}” was renamed to “{tag}”.")
            return redirect("recipients:tag", tag.pk)
        case "merge":
            form = MergeForm(request.POST, tag=tag)
            if not form.is_valid():
                raise tags.TagError("Choose the tag to merge into.")
            into = form.cleaned_data["into"]
            tags.merge(tag, into=into, by=user)
            messages.success(request, f"Tag “{name}” was merged into “{into}”.")
            return redirect("recipients:tag", into.pk)
        case "delete":
            if tags.size(tag) > TYPED_ABOVE and request.POST.get("typed", "").strip() != name:
                raise tags.TagError(f"Type the name “{name}” to delete the tag.")
            tags.delete(tag, by=user)
            messages.success(request, f"Tag “{name}” was deleted. Its recipients were kept.")
    return redirect("recipients:tags")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def tag_all(request: HttpRequest) -> HttpResponse:
    """Show how many recipients the filter finds, then add the tag to them or remove it."""
    user, chosen = user_of(request), RecipientFilter.of(request.GET)
    rows = chosen.rows(user)
    back = f"{reverse('recipients:list')}?{chosen.query}"
    form = TagAllForm(posted(request), user=user)
    if form.is_valid():
        tag = form.tag()
        if form.cleaned_data["do"] == "add":
            tied = tags.tag_all(rows, tag, by=user)
            whom = "1 recipient" if tied == 1 else f"{tied:,} recipients"
            messages.success(request, f"Tag “{tag}” was added to {whom}.")
        else:
            untied = tags.untag_all(rows, tag, by=user)
            whom = "1 recipient" if untied == 1 else f"{untied:,} recipients"
            messages.success(request, f"Tag “{tag}” was removed from {whom}.")
        return redirect(back)
    context = {"form": form, "count": at_most_shown(rows), "chosen": chosen, "back": back}
    return render(request, "recipients/tag_all.html", context)
