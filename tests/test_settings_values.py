"""Configuration values: every form of a duration, a size and a switch; odd values; contradictions; secrets."""

import hashlib

import pytest

from cacheproxy.errors import ConfigurationError
from cacheproxy.settings import resolve
from cacheproxy.wiring import redacted

BACKEND = "http://127.0.0.1:8000"
TOKEN = "hunter2-hunter2"


def loaded(**flags):
    """The settings with `flags`, given by name with `__` for the dot."""
    return resolve({"upstreams": [BACKEND], **{n.replace("__", "."): v for n, v in flags.items()}}, None, {}).settings


def refused(**flags) -> str:
    """The one sentence with which these are refused."""
    with pytest.raises(ConfigurationError) as caught:
        loaded(**flags)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def in_file(tmp_path, text: str):
    path = tmp_path / "cacheproxy.yaml"
    path.write_text(text)
    return resolve({"upstreams": [BACKEND]}, path, {}).settings


# --- durations and sizes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (5, 5), (0.5, 0.5), (0, 0), ("5", 5), ("0.5", 0.5), ("0", 0), ("250ms", 0.25), ("0ms", 0), ("30s", 30), ("5m", 300),
        ("1h", 3600), ("1.5h", 5400), ("2d", 172_800), (" 5 m ", 300), ("30 s", 30), ("007s", 7),
    ],
)  # fmt: skip
def test_durations(tmp_path, text, seconds):
    """Numbers of seconds, or a number with a unit; the same from a flag, a variable and a file."""
    assert loaded(exact__keep_stale=text).exact.keep_stale == seconds
    variable = {"CACHEPROXY_EXACT__KEEP_STALE": str(text)}
    assert resolve({"upstreams": [BACKEND]}, None, variable).settings.exact.keep_stale == seconds
    assert in_file(tmp_path, f"exact: {{keep_stale: {text}}}").exact.keep_stale == seconds


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "-1", -1, -0.5, "-5m", "5 parsecs", "m", "1h30m", "1,5s", "0x10", "1e3s", "five", "nan", "inf", "1_000s",
        float("nan"), float("inf"), True, False, "true", [5], "5m5", "+5", "²",
    ],
)  # fmt: skip
def test_what_is_no_duration_is_refused(text):
    """B40: a clear error at start that names the key, never a guess."""
    assert "`exact.keep_stale` (flag)" in refused(exact__keep_stale=text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (0, 0), (1000, 1000), ("1000", 1000), ("1000B", 1000), ("64KB", 64_000), ("64MB", 64_000_000), ("1GB", 10**9),
        ("64KiB", 65_536), ("64MiB", 2**26), ("1GiB", 2**30), ("2TiB", 2**41), ("1TB", 10**12), ("1.5GiB", 3 * 2**29),
        (" 64 MiB ", 2**26), ("64mib", 2**26), ("64mb", 64_000_000),
    ],
)  # fmt: skip
def test_sizes(tmp_path, text, size):
    """Numbers of bytes, or a number with a unit: powers of 1024 with an i, of 1000 without."""
    assert loaded(store__disk_bytes=text).store.disk_bytes == size
    variable = {"CACHEPROXY_STORE__DISK_BYTES": str(text)}
    assert resolve({"upstreams": [BACKEND]}, None, variable).settings.store.disk_bytes == size
    assert in_file(tmp_path, f"store: {{disk_bytes: {text}}}").store.disk_bytes == size


@pytest.mark.parametrize(
    "text", ["", "-1", -1, "64 bits", "MiB", "1,5GiB", "64M64", True, 1.5, float("inf"), "nan", "1e9", [1], "0x40", "²"]
)
def test_what_is_no_size_is_refused(text):
    assert "`store.disk_bytes` (flag)" in refused(store__disk_bytes=text)


# --- odd values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["flag", "environment", "file"])
@pytest.mark.parametrize(("value", "effect"), [(0, 0.0), (-1, None), ("", None), (2_147_483_647, None), ("1h", 3600.0)])
def test_odd_lifetimes_have_a_written_effect(tmp_path, source, value, effect):
    """B40: 0 keeps nothing, an hour is an hour, the others are errors that name the key; never 'for ever' or 60 s."""

    def load() -> float:
        if source == "flag":
            return loaded(exact__ttl=value).exact.ttl
        if source == "environment":
            variable = {"CACHEPROXY_EXACT__TTL": str(value)}
            return resolve({"upstreams": [BACKEND]}, None, variable).settings.exact.ttl
        return in_file(tmp_path, f"exact: {{ttl: {value!r}}}").exact.ttl

    if effect is None:
        with pytest.raises(ConfigurationError, match=r"`exact\.ttl`"):
            load()
    else:
        assert load() == effect


async def test_a_lifetime_of_0_keeps_nothing(start, session, backend):
    """B40: as the page on configuration says, unless a request asks for a lifetime."""
    from tests.rig import Client

    proxy = await start(exact__ttl=0)
    client = Client(proxy.base, session)
    answers = [await client.chat() for _ in range(2)]
    assert [(a.cache, a.get("x-cache-reason")) for a in answers] == [("MISS", "zero_ttl")] * 2
    answers = [await client.chat(X_Cache_TTL="60") for _ in range(2)]
    assert [a.cache for a in answers] == ["MISS", "HIT"]
    assert backend.calls == 3


@pytest.mark.parametrize(
    "name", ["limits.connect_timeout", "limits.first_byte_timeout", "limits.idle_timeout", "store.deadline"]
)
def test_a_time_limit_of_0_that_would_fail_everything_is_refused(name):
    """B40: 0 is not 'no limit' and not 'at once': a proxy that can reach nothing must not start."""
    assert f"`{name}`" in refused(**{name: 0})


@pytest.mark.parametrize("port", [-1, 65_536, "abc", "", 1.5, "80 80"])
def test_what_is_no_port_is_refused(port):
    assert "`listen.port`" in refused(listen__port=port)


@pytest.mark.parametrize("weight", [0, -1, 1001, "nan", "inf", "heavy", float("nan")])
def test_what_is_no_weight_is_refused(weight):
    assert "weight" in refused(upstreams=[{"url": BACKEND, "weight": weight}])


@pytest.mark.parametrize("text", ["on", "off", '"on"', "'off'"])
def test_a_switch_may_be_written_as_yaml_likes_it(tmp_path, text):
    """`mode: off`, unquoted, is what everybody writes; YAML reads it as a truth value."""
    assert in_file(tmp_path, f"exact:\n  mode: {text}\n").exact.mode == text.strip("\"'")


@pytest.mark.parametrize("text", ["true", "false", "on", "off", "yes", "no"])
def test_a_truth_value_may_be_written_as_yaml_likes_it(tmp_path, text):
    assert in_file(tmp_path, f"access: {{hide_hits: {text}}}").access.hide_hits is (text in ("true", "on", "yes"))
    variable = {"CACHEPROXY_ACCESS__HIDE_HITS": text}
    settings = resolve({"upstreams": [BACKEND]}, None, variable).settings
    assert settings.access.hide_hits is (text in ("true", "on", "yes"))


@pytest.mark.parametrize("value", ["maybe", "", 2, [True]])
def test_what_is_no_truth_value_is_refused(value):
    assert "`access.hide_hits`" in refused(access__hide_hits=value)


@pytest.mark.parametrize("value", ["ON", "1", "", "shadows", 1])
def test_what_is_none_of_the_choices_is_refused_with_the_choices(value):
    said = refused(exact__mode=value)
    assert "`exact.mode`" in said
    assert "'on', 'off', 'opt-in', 'read-only', 'write-only' or 'shadow'" in said


# --- backends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "", "ftp://a", "http://", "http://a:99999", "http://a:port", "http://a/v1?x=1", "http://a/#x", "://", "/v1",
        f"http://user:{TOKEN}@a:1", "unix:/tmp/x", "http://[::1",
    ],
)  # fmt: skip
def test_a_wrong_backend_is_refused_before_anything_starts(url):
    """By `check` as by `serve`; and what may be a password is not repeated."""
    said = refused(upstreams=[url])
    assert "upstream" in said
    assert TOKEN not in said


@pytest.mark.parametrize(
    "url", ["http://a", "https://a/v1", "http://a:8000/", "http://[::1]:8000/v1/", "http://a/b/v1"]
)
def test_a_backend_is_taken_in_every_usual_spelling(url):
    assert loaded(upstreams=[url]).upstreams[0].url


# --- contradictions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "192.168.1.2", "", "example.org", "::ffff:10.0.0.7"])
def test_an_admin_page_that_others_can_reach_needs_a_token(host):
    """B85: without one the proxy does not start, and says what to do."""
    said = refused(admin__host=host)
    assert "`admin.token` is not set" in said
    assert "127.0.0.1" in said
    assert loaded(admin__host=host, admin__token=TOKEN).admin.host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_on_loopback_no_token_is_needed(host):
    assert loaded(admin__host=host).admin.token is None


@pytest.mark.parametrize("token", ["", "short", "1234567"])
def test_a_token_that_can_be_guessed_is_refused(token):
    """B85: an empty or short token is a mistake, not a token; the message does not repeat it."""
    said = refused(admin__token=token)
    assert "`admin.token`" in said
    assert not token or token not in said


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"exact__ttl": "2h", "exact__max_ttl": "1h"}, ["exact.ttl", "exact.max_ttl"]),
        ({"exact__max_ttl": 0}, ["exact.ttl", "exact.max_ttl"]),
        ({"listen__port": 9000, "admin__port": 9000}, ["listen.port", "admin.port"]),
        ({"listen__port": 9000, "admin__port": 9000, "listen__host": "0.0.0.0"}, ["listen.port", "admin.port"]),
        ({"limits__answer_bytes": "2MiB", "limits__recording_bytes": "1MiB"}, ["answer_bytes", "recording_bytes"]),
    ],
)
def test_contradictions_are_refused_by_both_names(flags, words):
    said = refused(**flags)
    assert all(word in said for word in words)


def test_what_only_looks_like_a_contradiction_is_none():
    assert loaded(listen__port=0, admin__port=0)
    assert loaded(listen__port=9000, admin__port=9000, listen__host="127.0.0.2")
    assert loaded(exact__ttl=0, exact__max_ttl=0)
    assert loaded(exact__ttl="1h", exact__max_ttl="1h")


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_a_secret_is_shown_nowhere():
    """Not in the representation, nor in what `check` and the admin page show."""
    settings = loaded(admin__token=TOKEN)
    assert settings.admin.token.get_secret_value() == TOKEN
    for shown in (repr(settings), str(settings), str(redacted(settings)), settings.model_dump_json()):
        assert TOKEN not in shown
    assert redacted(settings)["admin"]["token"] == "**********"


@pytest.mark.parametrize("value", [TOKEN, [TOKEN], {"x": TOKEN}])
def test_an_error_does_not_repeat_the_value(value):
    """What was given for a key may be a secret that was put in the wrong place."""
    assert TOKEN not in refused(exact__ttl=value)
    if not isinstance(value, str):
        assert TOKEN not in refused(admin__token=value)


def test_settings_cannot_be_changed():
    settings = loaded()
    with pytest.raises(ValueError, match="frozen"):
        settings.exact.ttl = 5
    assert settings.exact.ttl == 3600


@pytest.mark.parametrize("key", ["sha256:", "sha256:zz", "sha256:" + "0" * 63, ""])
def test_a_digest_that_is_none_is_refused(key):
    """Said at the start, not when the first caller comes."""
    assert "access.key_groups.0.keys.0" in refused(access__key_groups=[{"name": "a", "keys": [key]}])


def test_a_key_is_in_one_group_only():
    """Also when one of the two is written as a digest; the key itself is not told."""
    digest = "sha256:" + hashlib.sha256(b"sk-1").hexdigest()
    for groups in ([("a", "sk-1"), ("b", digest)], [("a", "sk-1"), ("a", "sk-2")]):
        said = refused(access__key_groups=[{"name": name, "keys": [key]} for name, key in groups])
        assert "access.key_groups" in said
        assert "sk-1" not in said


def test_a_rule_for_a_group_that_does_not_exist_is_refused():
    assert "`team`" in refused(rules=[{"match": {"key_group": "team"}}])


@pytest.mark.parametrize(
    ("rule", "named"), [({"mach": {}}, "match"), ({"set": {"tll": 1}}, "ttl"), ({"match": {"modell": "m"}}, "model")]
)
def test_a_wrong_name_in_a_rule_is_named_with_the_nearest(rule, named):
    assert f"`{named}`" in refused(rules=[rule])
