"""Settings are safe by default, and say in one sentence what is wrong with them."""

import json
import runpy

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import settings as live
from config.environment import Environment
from tests.config.programs import PROJECT, run
from tests.config.settings_source import Read, numbers

GOOD_KEY = "mN4v-Qx7TzP2k9WcRj5Ls8HyB3dFg6Ua0EoViXtZ"
NUMBERS = [pytest.param(read, id=read.name) for read in numbers()]
WHOLE = [pytest.param(read, id=read.name) for read in numbers() if read.kind == "whole"]


def complaint(**environment: str) -> str:
    """The last line of a start that was refused."""
    started = run("-c", "import config.settings", **environment)
    assert started.returncode != 0
    return started.stderr.strip().splitlines()[-1]


def value_of(expression: str, **environment: str) -> object:
    started = run(
        "-c", f"import json; from config import settings; print(json.dumps({expression}))", **environment
    )
    assert started.returncode == 0, started.stderr
    return json.loads(started.stdout)


def load() -> None:
    runpy.run_path(str(PROJECT / "config" / "settings.py"))


class TestProduction:
    @pytest.mark.parametrize("name", ["SECRET_KEY", "ENCRYPTION_KEY", "ALLOWED_HOSTS"])
    def test_it_refuses_to_start_without(self, name: str) -> None:
        assert f"{name} is not set." in complaint(**{name: ""})

    def test_it_starts_with_all_three(self) -> None:
        assert value_of("settings.DEBUG") is False

    def test_debug_alone_brings_values_to_develop_with(self) -> None:
        assert value_of(
            "settings.ALLOWED_HOSTS", DEBUG="true", SECRET_KEY="", ENCRYPTION_KEY="", ALLOWED_HOSTS=""
        ) == ["localhost", "127.0.0.1", "[::1]", "testserver"]

    def test_debug_is_off_unless_asked_for(self) -> None:
        assert value_of("settings.DEBUG", DEBUG="") is False

    def test_cookies_travel_over_https_alone(self) -> None:
        assert value_of(
            "[settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE, settings.SECURE_SSL_REDIRECT]"
        ) == [True, True, True]

    def test_private_networks_are_closed_unless_they_are_named(self) -> None:
        assert value_of("settings.PRIVATE_NETWORKS") == ["none"]
        assert value_of("settings.PRIVATE_NETWORKS", PRIVATE_NETWORKS="10.1.0.0/16") == ["10.1.0.0/16"]
        assert value_of("settings.PRIVATE_NETWORKS", DEBUG="true") == ["all"]

    def test_a_short_key_for_unsubscribe_links_is_refused(self) -> None:
        assert "UNSUBSCRIBE_KEY is too short" in complaint(UNSUBSCRIBE_KEY=f"{'k' * 40},short")
        assert "UNSUBSCRIBE_KEY is too short or too simple" in complaint(UNSUBSCRIBE_KEY="k" * 40)
        keys = [GOOD_KEY, "k" * 40]  # the second one is of before
        assert value_of("settings.UNSUBSCRIBE_KEYS", UNSUBSCRIBE_KEY=",".join(keys)) == keys

    def test_a_key_of_before_that_can_be_guessed_is_refused(self) -> None:
        assert "SECRET_KEY_FALLBACKS is too short" in complaint(SECRET_KEY_FALLBACKS=f"{GOOD_KEY},x")
        assert value_of("settings.SECRET_KEY_FALLBACKS", SECRET_KEY_FALLBACKS=GOOD_KEY) == [GOOD_KEY]

    @pytest.mark.parametrize(
        "key",
        ["x", "short", "x" * 60, "abc" * 20, "django-insecure-" + "k7Qz" * 10, "ChangeMe" + "0123456789" * 4],
    )
    def test_a_key_that_can_be_guessed_is_refused(self, key: str) -> None:
        assert "ImproperlyConfigured: SECRET_KEY " in (said := complaint(SECRET_KEY=key))
        assert "secrets.token_urlsafe(50)" in said

    @pytest.mark.parametrize("hosts", ["*", "paceline.example,*", "paceline.example, *", "."])
    def test_hosts_that_allow_every_name_are_refused(self, hosts: str) -> None:
        assert "ALLOWED_HOSTS allows every name." in complaint(ALLOWED_HOSTS=hosts)

    def test_a_name_with_all_below_it_is_allowed(self) -> None:
        assert value_of("settings.ALLOWED_HOSTS", ALLOWED_HOSTS=".paceline.example") == [".paceline.example"]

    def test_a_proxy_that_is_no_network_is_refused(self) -> None:
        assert "TRUSTED_PROXIES: " in complaint(TRUSTED_PROXIES="proxy.example")

    def test_a_public_address_without_a_scheme_is_refused(self) -> None:
        assert complaint(PUBLIC_URL="paceline.example").endswith("it must start with https:// or http://.")

    def test_the_public_address_ends_without_a_slash(self) -> None:
        assert value_of("settings.PUBLIC_URL", PUBLIC_URL="https://a.example/") == "https://a.example"

    def test_keys_are_a_list_with_the_newest_first(self) -> None:
        assert value_of("settings.ENCRYPTION_KEYS", ENCRYPTION_KEY="new,old") == ["new", "old"]


class TestNumbers:
    """Each number that is read, with a value on either side of its range."""

    @pytest.fixture(autouse=True)
    def over_https(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTPS", "true")  # else HSTS_SECONDS is not asked for

    @pytest.mark.parametrize("read", NUMBERS)
    def test_a_value_below_its_range_is_refused(self, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(read.name, str((read.low or 0) - 1))
        with pytest.raises(ImproperlyConfigured, match=rf"^{read.name} is .*: it must be from .* to .*\.$"):
            load()

    @pytest.mark.parametrize("read", NUMBERS)
    def test_a_value_above_its_range_is_refused(self, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(read.name, str((read.high or 0) + 1))
        with pytest.raises(ImproperlyConfigured, match=rf"^{read.name} is .*: it must be from .* to .*\.$"):
            load()

    @pytest.mark.parametrize("read", NUMBERS)
    def test_a_word_is_refused(self, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(read.name, "soon")
        with pytest.raises(ImproperlyConfigured, match=rf"^{read.name} is 'soon', which is not"):
            load()

    @pytest.mark.parametrize("read", WHOLE)
    def test_half_of_what_is_counted_is_refused(self, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(read.name, "1.5")
        with pytest.raises(ImproperlyConfigured, match=rf"^{read.name} is '1.5', which is not"):
            load()

    @pytest.mark.parametrize("value", ["nan", "inf", "-inf", "5 minutes", "1,5", "3s"])
    def test_what_only_looks_like_a_number_is_refused(
        self, value: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MAX_DELAY_SECONDS", value)
        with pytest.raises(ImproperlyConfigured, match=r"^MAX_DELAY_SECONDS is"):
            load()

    def test_a_power_of_ten_is_read_as_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GAP", "1e2")
        assert Environment().number("GAP", 3, 2, 500) == 100

    @pytest.mark.parametrize("read", NUMBERS)
    def test_the_default_lies_within_its_range(self, read: Read) -> None:
        assert isinstance(read.default, int | float)
        assert read.low is not None
        assert read.high is not None
        assert read.low <= read.default <= read.high

    def test_the_ends_of_a_range_belong_to_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        environment = Environment()
        for value in (2, 10):
            monkeypatch.setenv("GAP", str(value))
            assert environment.number("GAP", 3, 2, 10) == value

    def test_the_sentence_reaches_the_one_who_starts_it(self) -> None:
        assert complaint(MAX_PER_MINUTE="0").endswith("MAX_PER_MINUTE is 0: it must be from 1 to 100000.")


class TestTogether:
    """Settings that must fit each other."""

    def test_the_window_starts_before_it_ends(self) -> None:
        assert complaint(WINDOW_START_HOUR="18", WINDOW_END_HOUR="6").endswith(
            "WINDOW_START_HOUR (18) must be before WINDOW_END_HOUR (6)."
        )

    @pytest.mark.parametrize(
        ("low", "high"),
        [
            ("PART_GAP_MIN_MS", "PART_GAP_MAX_MS"),
            ("OVERDUE_GAP_MIN_SECONDS", "OVERDUE_GAP_MAX_SECONDS"),
        ],
    )
    def test_the_shortest_gap_is_not_above_the_longest(self, low: str, high: str) -> None:
        assert complaint(**{low: "400", high: "300"}).endswith(f"{low} must not be above {high}.")

    def test_send_times_reach_no_further_than_a_shift(self) -> None:
        assert value_of("settings.HORIZON_SECONDS", PUMP_SECONDS="20") == 20
        assert value_of("settings.HORIZON_SECONDS", PUMP_SECONDS="20", HORIZON_SECONDS="5") == 5

    @pytest.mark.parametrize(("slowest", "lasts"), [("20", 300), ("60", 210), ("120", 60)])
    def test_a_shift_and_its_slowest_message_end_before_redis_delivers_again(
        self, slowest: str, lasts: int
    ) -> None:
        assert value_of("settings.PUMP_SECONDS", SEND_TIMEOUT_SECONDS=slowest) == lasts


class TestEnvironment:
    def test_it_remembers_every_name_that_was_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("A", "B", "C", "D"):
            monkeypatch.delenv(name, raising=False)
        environment = Environment()
        environment.text("A")
        environment.flag("B")
        environment.words("C")
        environment.whole("D", 1, 0, 2)
        assert environment.names == {"A", "B", "C", "D"}

    @pytest.mark.parametrize("word", ["true", "True", "yes", "on", "1"])
    def test_a_flag_is_set_by(self, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SAFE", word)
        assert Environment().flag("SAFE") is True

    @pytest.mark.parametrize("word", ["false", "False", "no", "off", "0"])
    def test_a_flag_is_taken_back_by(self, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SAFE", word)
        assert Environment().flag("SAFE", default=True) is False

    def test_a_flag_that_is_neither_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SAFE", "ture")
        with pytest.raises(ImproperlyConfigured, match=r"^SAFE is 'ture', which is not"):
            Environment().flag("SAFE", default=True)

    def test_an_empty_value_counts_as_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EMPTY", "")
        environment = Environment()
        assert environment.flag("EMPTY", default=True) is True
        assert environment.text("EMPTY", "UTC") == "UTC"
        assert environment.whole("EMPTY", 5, 1, 9) == 5
        assert environment.number("EMPTY", 0.5, 0, 1) == 0.5
        assert environment.words("EMPTY", ["a"]) == ["a"]

    def test_words_come_without_the_spaces_around_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOSTS", "one.example, two.example")
        assert Environment().words("HOSTS") == ["one.example", "two.example"]

    def test_the_settings_in_use_were_read_through_it(self) -> None:
        assert live.env.names >= {"SECRET_KEY", "DATABASE_URL", "MAX_PER_MINUTE"}


class TestServers:
    def test_celery_takes_json_only_and_acknowledges_late(self) -> None:
        assert live.CELERY_ACCEPT_CONTENT == [live.CELERY_TASK_SERIALIZER] == ["json"]
        assert live.CELERY_TASK_ACKS_LATE is True
        assert live.CELERY_WORKER_PREFETCH_MULTIPLIER == 1
        assert live.CELERY_BROKER_TRANSPORT_OPTIONS["priority_steps"] == [0]

    def test_no_page_may_run_a_script_that_is_not_ours(self) -> None:
        directives = live.CONTENT_SECURITY_POLICY["DIRECTIVES"]
        assert directives["default-src"] == ["'none'"]
        assert directives["script-src"] == directives["style-src"] == ["'self'"]

    def test_what_the_database_address_asks_for_is_passed_on(self) -> None:
        assert value_of(
            "{name: settings.DATABASES['default'][name] for name in ('NAME', 'USER', 'PASSWORD', 'HOST')}"
        ) == {"NAME": "paceline", "USER": "paceline", "PASSWORD": "secret", "HOST": "database.example"}
        assert value_of("settings.DATABASES['default']['OPTIONS']['sslmode']") == "require"

    def test_the_database_may_be_behind_a_socket(self) -> None:
        address = "postgresql://paceline@/paceline?host=%2Fsrv%2Fpostgres"
        assert value_of("settings.DATABASES['default']['HOST']", DATABASE_URL=address) == "/srv/postgres"

    def test_redis_may_be_behind_a_socket(self) -> None:
        address = "unix:///srv/redis.sock?db=3"
        assert (
            value_of("settings.CELERY_BROKER_URL", REDIS_URL=address)
            == "redis+socket:///srv/redis.sock?virtual_host=3"
        )

    def test_hosts_come_without_the_spaces_around_them(self) -> None:
        assert value_of("settings.ALLOWED_HOSTS", ALLOWED_HOSTS="one.example, two.example") == [
            "one.example",
            "two.example",
        ]

    def test_database_connections_come_from_a_pool(self) -> None:
        assert (
            value_of("settings.DATABASES['default']['OPTIONS']['pool']['max_size']", DATABASE_POOL="7") == 7
        )
