"""Recipients in a browser: a file on its way in, with and without script, and every page on a phone."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from redis import Redis

from accounts.imports import progress, stages
from accounts.models import Recipient, User
from accounts.recipients import consent
from tests.accounts.imports.test_stages import FILE, checked, upload
from tests.browser.conftest import NewPage
from tests.browser.test_look import axe_findings, sideways, visit
from tests.factories import InboundFactory, RecipientFactory, RunTargetFactory, TagFactory, UserFactory

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def nadia(transactional_db: None) -> User:
    return UserFactory.create(username="nadia")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize("javascript", [True, False], ids=["with script", "without script"])
def test_a_file_is_imported_from_the_empty_list(
    new_page: NewPage, nadia: User, file: Path, javascript: bool
) -> None:
    page = new_page(user=nadia, javascript=javascript)
    page.goto("/recipients/")
    page.get_by_role("link", name="Import a file").click()
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_label("Content of “Phone”")).to_have_value("address")
    page.get_by_label("Tags for all recipients").fill("2026")
    page.get_by_role("button", name="Check all rows").click()
    expect(page.get_by_text("The same address as in row 2.")).to_be_visible()
    assert not Recipient.objects.exists()
    page.get_by_role("button", name="Import 2 recipients, leave out 2").click()
    page.get_by_role("link", name="Show recipients").click()
    expect(page.get_by_role("link", name="Ann", exact=True)).to_be_visible()


def test_a_large_file_shows_its_progress_and_then_what_was_found(
    new_page: NewPage, nadia: User, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload(nadia)
    monkeypatch.setattr(stages, "AT_ONCE", 0)
    stages.start_check(job)
    page = new_page(user=nadia)
    page.goto(f"/recipients/import/{job.pk}/")
    expect(page.get_by_text("waiting for a worker")).to_be_visible()
    progress.Reporter(job.pk).tell(rows=1500, share=0.5)
    expect(page.get_by_text("1,500 rows, 50%")).to_be_visible()
    stages.work(job.pk)
    expect(page.get_by_role("button", name="Import 2 recipients")).to_be_visible()


def test_somebody_is_opted_out_by_hand_with_a_reason(new_page: NewPage, nadia: User) -> None:
    ann = RecipientFactory.create(owner=nadia, name="Ann Lee")
    page: Page = new_page(user=nadia)
    page.goto("/recipients/")
    page.get_by_role("link", name="Ann Lee").click()
    page.get_by_role("link", name="Opt out").click()
    page.get_by_label("Reason").fill("Asked on the phone.")
    page.get_by_role("button", name="Opt out").click()
    expect(page.get_by_text("Ann Lee is opted out.")).to_be_visible()
    expect(page.locator(".timeline")).to_contain_text("Asked on the phone. (nadia)")
    assert not Recipient.objects.reachable().filter(pk=ann.pk).exists()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_every_page_fits_and_axe_finds_nothing_serious(
    new_page: NewPage, nadia: User, redis: Redis, scheme: str, width: int
) -> None:
    long = "Nachbarschaftsversammlungsteilnehmer"
    tag = TagFactory.create(owner=nadia, name=long)
    ann = RecipientFactory.create(owner=nadia, name=f"{long} {long}", tags=[tag], fields={"city": long * 3})
    RunTargetFactory.create(run__reminder__owner=nadia, recipient=ann, failed=True)
    InboundFactory.create(account__owner=nadia, recipient=ann, text=long * 5)
    consent.opt_out(ann, how="Wrote STOP.")
    dan = RecipientFactory.create(owner=nadia, blocked=True, converted=True, archived=True)
    ben = RecipientFactory.create(owner=nadia, cooling_down=True)
    job, draft, done = checked(nadia), upload(nadia), checked(nadia)
    stages.confirm(done)
    page = new_page(user=nadia, width=width, scheme=scheme, axe=True)
    found = {}
    for path in (
        "?state=opted_out",
        "add/",
        f"{ann.pk}/",
        f"{ann.pk}/edit/",
        f"{ann.pk}/opt-in/",
        f"{dan.pk}/",
        f"{dan.pk}/unblock/",
        f"{dan.pk}/reopen/",
        *(f"{ben.pk}/{part}" for part in ("", "opt-out/", "block/", "convert/")),
        "?q=nobody",
        "tags/",
        f"tags/{tag.pk}/",
        "tags/all/",
        "import/",
        f"import/{draft.pk}/columns/",
        f"import/{job.pk}/",
        f"import/{done.pk}/",
    ):
        visit(page, f"/recipients/{path}")
        found[path] = (sideways(page), axe_findings(page))
    assert {path: trouble for path, trouble in found.items() if trouble != (0, [])} == {}


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1280)])
def test_what_was_typed_wrong_is_read_out(new_page: NewPage, nadia: User, scheme: str, width: int) -> None:
    ann = RecipientFactory.create(owner=nadia)
    page = new_page(user=nadia, width=width, scheme=scheme, axe=True)
    for path, button in (
        ("add/", "Add recipient"),
        (f"{ann.pk}/opt-out/", "Opt out"),
        ("tags/", "New tag"),
        ("tags/all/", "Tag 1 recipient"),
        ("import/", "Upload"),
    ):
        visit(page, f"/recipients/{path}")
        page.evaluate("document.querySelectorAll('form').forEach((form) => (form.noValidate = true))")
        page.get_by_role("button", name=button).click()
        expect(page.locator(".error").first).to_be_visible()
        assert (sideways(page), axe_findings(page)) == (0, []), path


def test_somebody_new_finds_pages_that_say_what_to_do(new_page: NewPage, nadia: User) -> None:
    page = new_page(user=nadia, width=360, axe=True)
    for path in ("/recipients/", "/recipients/tags/", "/recipients/import/", "/follow-ups/", "/accounts/"):
        visit(page, path)
        assert (sideways(page), axe_findings(page)) == (0, []), path
