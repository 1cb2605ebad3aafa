"""The admin pages of runs and targets: to look at, to archive, to find by number."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from accounts.models import User
from delivery.models import Run, RunTarget
from tests.factories import AccountFactory, RunFactory, RunTargetFactory, UserFactory

pytestmark = pytest.mark.django_db

TARGETS = "admin:delivery_runtarget_changelist"
LIST = "/admin/delivery/run/"


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


def act(client: Client, name: str, *runs: Run, **said: str) -> list[str]:
    """Choose the runs in the list and press; what was told."""
    said = {"action": f"{name}_runs"} | said
    answer = client.post(LIST, {**said, "_selected_action": [run.pk for run in runs]}, follow=True)
    return [str(message) for message in answer.context["messages"]]


def press(client: Client, run: Run, move: str, **said: str) -> list[str]:
    """Press a button on the run's page, which stays where it is."""
    answer = client.post(LIST, pressed(run, move) | said, follow=True)
    assert answer.redirect_chain[-1][0] == reverse("admin:delivery_run_change", args=[run.pk])
    return [str(message) for message in answer.context["messages"]]


def pressed(run: Run, move: str) -> dict[str, Any]:
    return {"action": f"{move}_runs", "_selected_action": [run.pk], "back_to": run.pk}


def held(**values: int) -> Run:
    run = RunFactory.create(**values)
    Run.objects.filter(pk=run.pk).update(status="paused", pause_reason="operator")
    return Run.objects.get(pk=run.pk)


def status_of(run: Run) -> str:
    return Run.objects.values_list("status", flat=True).get(pk=run.pk)


def test_a_settled_run_is_archived_and_an_open_one_is_not(client: Client) -> None:
    done, going = RunFactory.create(partial=True), RunFactory.create()
    assert act(client, "archive", done, going, confirmed="1") == [
        f"“{done.name}” was archived.",
        f"Run {going.pk} is running: wait for its end, or cancel it first.",
    ]
    assert found(client, "admin:delivery_run_changelist") == [going]
    assert found(client, "admin:delivery_run_changelist", archived="yes") == [done]


def test_a_run_that_was_canceled_in_its_middle_is_found_as_canceled(client: Client) -> None:
    canceled = RunFactory.create(status="partial", sent=1, skipped=1, canceled_at=datetime.now(UTC))
    partial = RunFactory.create(partial=True)
    for status, run in (("canceled", canceled), ("partial", partial)):
        page = client.get(reverse("admin:delivery_run_changelist"), {"status__exact": status})
        assert list(page.context["cl"].queryset) == [run]


def test_a_page_offers_what_suits_its_run(client: Client) -> None:
    def offered(run: Run) -> list[str]:
        page = client.get(reverse("admin:delivery_run_change", args=[run.pk]))
        return [button.action.removesuffix("_runs") for button in page.context["row_actions"]]

    assert offered(held(sent=1, targets=2)) == ["resume", "cancel", "hand_over"]
    assert offered(RunFactory.create(targets=1)) == ["pause", "cancel", "hand_over"]
    assert offered(RunFactory.create(partial=True)) == ["retry", "archive"]
    assert offered(RunFactory.create(success=True)) == ["archive"]
    assert offered(RunFactory.create(success=True, archived=True)) == ["unarchive"]


def test_a_run_is_paused_and_resumed_by_its_buttons(client: Client) -> None:
    run = RunFactory.create(targets=2)
    assert press(client, run, "pause") == [f"“{run.name}” was paused. Nothing is sent until you resume it."]
    assert status_of(run) == "paused"
    press(client, run, "resume")
    assert status_of(run) in {"running", "queued"}


def test_a_move_that_does_not_suit_is_refused_in_words(client: Client) -> None:
    run = RunFactory.create(success=True)
    assert press(client, run, "resume") == [
        f"Run {run.pk} is success: only a paused run can be resumed.",
    ]


def test_cancel_shows_the_number_and_asks_first(client: Client) -> None:
    run = held(sent=1, targets=3)
    question = client.post(LIST, pressed(run, "cancel")).content.decode()
    assert "1 of 4 already received it. The other 3 will not." in question
    assert status_of(run) == "paused"
    press(client, run, "cancel", confirmed="1")
    assert status_of(run) == "partial"


def test_canceling_many_targets_is_typed(client: Client) -> None:
    runs = [held(sent=1, targets=60) for _ in range(2)]
    said = {"action": "cancel_runs", "_selected_action": [run.pk for run in runs], "confirmed": "1"}
    assert "Type “cancel 2 runs”" in client.post(LIST, said).content.decode()
    assert "The text does not match." in client.post(LIST, said | {"typed": "yes"}).content.decode()
    assert status_of(runs[0]) == "paused"
    client.post(LIST, said | {"typed": "Cancel 2 runs"})
    assert {status_of(run) for run in runs} == {"partial"}


def test_an_unknown_move_and_a_mere_look_move_nothing(client: Client) -> None:
    run = RunFactory.create(targets=1)
    client.post(LIST, pressed(run, "delete"))
    client.get(LIST, pressed(run, "cancel"))
    assert status_of(run) == "running"


def test_an_archived_run_is_brought_back_by_its_button(client: Client) -> None:
    run = RunFactory.create(success=True, archived=True)
    page = client.get(reverse("admin:delivery_run_change", args=[run.pk]))
    client.post(page.context["row_actions_url"], pressed(run, "unarchive"))
    run.refresh_from_db()
    assert run.archived_at is None


def test_an_operator_moves_nothing_here(client: Client, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, targets=1)
    client.force_login(owner)
    client.post(LIST, pressed(run, "pause"))
    assert status_of(run) == "running"


def test_a_person_decides_about_what_is_unconfirmed(client: Client) -> None:
    run = RunFactory.create(sent=1, unconfirmed=2)
    arrived, lost = (RunTargetFactory.create(run=run, unconfirmed=True) for _ in range(2))

    def decide(action: str, target: RunTarget) -> str:
        page = client.get(reverse("admin:delivery_runtarget_change", args=[target.pk]))
        assert action in {button.action for button in page.context["row_actions"]}
        client.post(reverse(TARGETS), {"action": action, "_selected_action": [target.pk]})
        return RunTarget.objects.get(pk=target.pk).status

    assert decide("mark_sent", arrived) == "sent"
    assert decide("send_again", lost) == "pending"
    sent = client.get(reverse("admin:delivery_runtarget_change", args=[arrived.pk]))
    assert sent.context["row_actions"] == []


def test_accounts_are_paused_and_resumed_in_their_list(client: Client) -> None:
    active, flagged = AccountFactory.create(name="One"), AccountFactory.create(name="Two", flagged=True)
    url = reverse("admin:accounts_account_changelist")

    def move(action: str) -> set[str]:
        said = {"action": action, "_selected_action": [active.pk, flagged.pk]}
        return {str(message) for message in client.post(url, said, follow=True).context["messages"]}

    assert move("pause_accounts") == {"Paused: 1.", "Two is flagged and cannot become paused."}
    active.refresh_from_db()
    assert (active.status, active.status_by is not None) == ("paused", True)
    assert "Resumed: 2." in move("resume_accounts")


@pytest.mark.parametrize("page", ["changelist", "change"])
def test_progress_in_the_admin_is_live(client: Client, page: str) -> None:
    run = RunFactory.create(sent=3, pending=7)
    args = [run.pk] if page == "change" else []
    text = client.get(reverse(f"admin:delivery_run_{page}", args=args)).content.decode()
    assert "js/live.js" in text
    assert f'data-run="{run.pk}"' in text
    assert f'data-run-status="{run.pk}"' in text


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
