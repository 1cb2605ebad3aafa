"""The first start of an installation: Django's own checklist, and a sentence where something is missing."""

from tests.config.programs import run


def test_the_deployment_checklist_is_clean() -> None:
    checked = run("manage.py", "check", "--deploy", "--fail-level", "WARNING")
    assert checked.returncode == 0, checked.stderr
    assert "no issues (0 silenced)" in checked.stdout


def test_the_checklist_would_notice_plain_http() -> None:
    checked = run("manage.py", "check", "--deploy", "--fail-level", "WARNING", HTTPS="false")
    assert checked.returncode != 0
    assert "security.W008" in checked.stderr


def test_a_missing_setting_is_one_sentence_and_no_traceback() -> None:
    checked = run("manage.py", "check", SECRET_KEY="")
    assert checked.returncode != 0
    assert checked.stderr.splitlines() == [
        "paceline: SECRET_KEY is not set. Set it in the environment, or set DEBUG=true to develop."
    ]
