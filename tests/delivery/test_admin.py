"""The admin pages of runs and targets: to look at, to archive, to find by number."""

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from accounts.models import User
from delivery.models import Run, RunTarget
from tests.factories import RunFactory, RunTargetFactory, UserFactory

pytestmark = pytest.mark.django_db

TARGETS = "admin:delivery_runtarget_changelist"


@pytest.fixture(autouse=True)
def _logged_in(client: Client) -> None:
    """Even those who may do everything else."""
    client.force_login(UserFactory.create(superuser=True))


def found(client: Client, name: str, **asked: str | int) -> list[object]:
    return list(client.get(reverse(name), asked).context["cl"].result_list)


@pytest.mark.parametrize("model", ["run", "runtarget", "runaccount", "mediahandle"])
def test_nobody_adds_what_the_engine_makes(client: Client, model: str) -> None:
    assert client.get(reverse(f"admin:delivery_{model}_add")).status_code == 403


def test_counters_and_status_of_a_run_cannot_be_posted(client: Client, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, sent=3, pending=7)
    before = Run.objects.filter(pk=run.pk).values().get()
    typed = {"sent": 10, "pending": 0, "status": "success", "name": "Other"}
    url = reverse("admin:delivery_run_change", args=[run.pk])
    assert client.post(url, typed).status_code == 403
    assert Run.objects.filter(pk=run.pk).values().get() == before


def test_a_target_cannot_be_posted(client: Client) -> None:
    target = RunTargetFactory.create()
    url = reverse("admin:delivery_runtarget_change", args=[target.pk])
    assert client.post(url, {"status": "sent"}).status_code == 403
    assert RunTarget.objects.get(pk=target.pk).status == "pending"


def test_a_run_is_never_deleted(client: Client) -> None:
    run = RunFactory.create(success=True)
    assert (
        client.post(reverse("admin:delivery_run_delete", args=[run.pk]), {"post": "yes"}).status_code == 403
    )
    everything = {"action": "delete_selected", "_selected_action": [run.pk], "post": "yes"}
    client.post(reverse("admin:delivery_run_changelist"), everything)
    assert Run.objects.exists()


def test_a_settled_run_is_archived_and_an_open_one_is_not(client: Client) -> None:
    url = reverse("admin:delivery_run_changelist")
    done, going = RunFactory.create(partial=True), RunFactory.create()
    answer = client.post(url, {"action": "archive", "_selected_action": [done.pk, going.pk]}, follow=True)
    assert [str(message) for message in answer.context["messages"]] == [
        "Archived: 1.",
        "Not archived: 1, not settled yet: finish or cancel it first.",
    ]
    assert found(client, "admin:delivery_run_changelist") == [going]
    assert found(client, "admin:delivery_run_changelist", archived="yes") == [done]


def test_a_run_shows_its_frozen_parts_as_text(client: Client) -> None:
    run = RunFactory.create(parts=[{"kind": "text", "text": "<b>Grüße</b>"}])
    page = client.get(reverse("admin:delivery_run_change", args=[run.pk])).content.decode()
    assert "&lt;b&gt;Grüße&lt;/b&gt;" in page


def test_a_number_finds_a_target_and_run_with_a_number_those_of_a_run(client: Client) -> None:
    run = RunFactory.create(targets=2)
    other = RunTargetFactory.create()
    assert found(client, TARGETS, q=other.pk) == [other]
    assert found(client, TARGETS, q=f"Run {run.pk}") == list(run.targets.order_by("id"))
    assert found(client, TARGETS, run__id__exact=run.pk) == list(run.targets.order_by("id"))
    assert found(client, TARGETS, q="somebody") == []
    assert len(found(client, TARGETS, q=" ")) == 3


def test_targets_are_filtered_by_status_within_a_run_alone(client: Client) -> None:
    run = RunFactory.create(targets=1)
    failed = RunTargetFactory.create(run=run, failed=True)
    assert found(client, TARGETS, run__id__exact=run.pk, status="failed") == [failed]
    assert not client.get(reverse(TARGETS)).context["cl"].has_filters
    assert client.get(reverse(TARGETS), {"run__id__exact": run.pk}).context["cl"].has_filters


def test_the_lists_of_targets_read_an_index_in_its_order(client: Client) -> None:
    run = RunFactory.create(targets=3)
    everything = client.get(reverse(TARGETS)).context["cl"].queryset
    of_run = client.get(reverse(TARGETS), {"run__id__exact": run.pk}).context["cl"].queryset
    with connection.cursor() as cursor:
        for method in ("seqscan", "bitmapscan", "sort"):
            cursor.execute(f"SET LOCAL enable_{method} = off")
    assert "delivery_runtarget_pkey" in everything[:50].explain()
    assert "target_by_status" in of_run[:50].explain()
