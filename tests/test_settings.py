"""Configuration: four sources, one of them wins, every mistake is named in one sentence. Forms of values are in
test_settings_values.py."""

import orjson
import pytest

from cacheproxy.errors import ConfigurationError
from cacheproxy.settings import names, resolve

BACKEND = "http://127.0.0.1:8000"


@pytest.fixture
def file(tmp_path):
    """Writes a YAML file: ``file("exact: {ttl: 5}")``."""

    def write(text: str | bytes):
        path = tmp_path / "cacheproxy.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def refused(flags=None, config=None, environment=None) -> str:
    """The one sentence with which a configuration is refused."""
    with pytest.raises(ConfigurationError) as caught:
        resolve({"upstreams": [BACKEND], **(flags or {})}, config, environment or {})
    text = str(caught.value)
    assert "\n" not in text
    return text


# --- sources ---------------------------------------------------------------------------------------------------------


def test_only_a_backend_has_to_be_said():
    """The embedded default of the contract."""
    resolved = resolve({"upstreams": [BACKEND]}, None, {})
    settings = resolved.settings
    assert [(u.url, u.weight) for u in settings.upstreams] == [(BACKEND, 1.0)]
    assert (settings.listen.host, settings.listen.port) == ("127.0.0.1", 8800)
    assert (settings.admin.host, settings.admin.port, settings.admin.token) == ("127.0.0.1", 8801, None)
    assert (settings.store.data_dir, settings.access.grant_ttl, settings.access.grace) == (
        "./cacheproxy-data", 300, 3600,
    )  # fmt: skip
    assert (settings.drain.grace, settings.drain.timeout) == (5, 30)
    assert resolved.origins == {"upstreams": "flag"}


def test_without_a_backend_it_says_what_to_do():
    with pytest.raises(ConfigurationError, match=r"--upstream http://127\.0\.0\.1:8000"):
        resolve({}, None, {})


SOURCES = ("file", "environment", "flag")


@pytest.mark.parametrize("given", [(), ("file",), ("environment",), ("flag",), SOURCES[:2], SOURCES[1:], SOURCES])
def test_the_later_source_wins(file, given):
    """Defaults < YAML < environment < flags, each value with its origin."""
    path = file("exact: {ttl: 11}\n" if "file" in given else "")
    environment = {"CACHEPROXY_EXACT__TTL": "12"} if "environment" in given else {}
    flags = {"upstreams": [BACKEND], **({"exact.ttl": 13} if "flag" in given else {})}
    resolved = resolve(flags, path, environment)
    value, origin = {
        "file": (11, f"file {path}"),
        "environment": (12, "environment CACHEPROXY_EXACT__TTL"),
        "flag": (13, "flag"),
    }[given[-1]] if given else (3600, None)  # fmt: skip
    assert resolved.settings.exact.ttl == value
    assert resolved.origins.get("exact.ttl") == origin


def test_values_of_different_sources_stand_together(file):
    """A later source replaces a value, not its group."""
    path = file("upstreams: [http://a:1]\nexact: {ttl: 11, max_ttl: 99}\naccess:\n  hide_hits: true\n")
    resolved = resolve({"exact.keep_stale": 5}, path, {"CACHEPROXY_EXACT__TTL": "12"})
    exact = resolved.settings.exact
    assert (exact.ttl, exact.max_ttl, exact.keep_stale) == (12, 99, 5)
    assert resolved.settings.access.hide_hits
    assert resolved.settings.upstreams[0].url == "http://a:1"


def test_the_real_environment_is_the_default_source(monkeypatch):
    monkeypatch.setenv("CACHEPROXY_EXACT__TTL", "77")
    assert resolve({"upstreams": [BACKEND]}, None).settings.exact.ttl == 77


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("http://a:1", ["http://a:1"]),
        ("http://a:1,http://b:2", ["http://a:1", "http://b:2"]),
        (" http://a:1 , http://b:2 ,", ["http://a:1", "http://b:2"]),
        ('["http://a:1"]', ["http://a:1"]),
        (' [{"url": "http://a:1", "weight": 3}, "http://b:2"]', ["http://a:1", "http://b:2"]),
    ],
)
def test_backends_in_the_environment(text, urls):
    settings = resolve({}, None, {"CACHEPROXY_UPSTREAMS": text}).settings
    assert [u.url for u in settings.upstreams] == urls
    assert settings.upstreams[0].weight == (3 if "weight" in text else 1)


@pytest.mark.parametrize("text", ["", ",", '["http://a:1"', '[{"url": 7}]', "[7]", "[]"])
def test_wrong_backends_in_the_environment_are_named(text):
    with pytest.raises(ConfigurationError) as caught:
        resolve({}, None, {"CACHEPROXY_UPSTREAMS": text})
    assert "upstreams" in str(caught.value).lower()
    assert "\n" not in str(caught.value)


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("exact.tll", "exact.ttl"), ("exact.time_to_live", "exact."), ("acces.grace", "access.grace"),
        ("store.datadir", "store.data_dir"), ("drain.time_out", "drain.timeout"), ("upstream", "upstreams"),
        ("redis.nothing", ""), ("limits.idle_time", "limits.idle_timeout"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_refused_and_the_nearest_told(file, wrong, nearest):
    """In a file, in the environment and as a flag alike; the origin is told too."""
    group, _, name = wrong.partition(".")
    path = file(f"{group}: {{{name}: 1}}" if name else f"{group}: x")
    variable = f"CACHEPROXY_{wrong.upper().replace('.', '__')}"
    for said, origin in (
        (refused(config=path), str(path)),
        (refused(environment={variable: "1"}), variable),
        (refused({wrong: 1}), "flag"),
    ):
        assert f"`{wrong}`" in said
        assert f"nearest known one is `{nearest}" in said
        assert origin in said


@pytest.mark.parametrize("empty", ["exact: {tll: }", "exact: {tll: {}}", "tll:", "tll: {}"])
def test_an_unknown_name_without_a_value_is_refused_too(file, empty):
    """A misspelt name is a mistake whatever stands behind it."""
    assert "tll`" in refused(config=file(empty))


def test_a_group_is_no_key(file):
    assert "`exact` " in refused(config=file("exact: 5"))
    assert "group" in refused(config=file("exact: [1]"))


def test_a_wrong_name_inside_a_backend_is_named_with_the_nearest(file):
    with pytest.raises(ConfigurationError) as caught:
        resolve({}, file("upstreams: [{url: 'http://a:1', wieght: 2}]"), {})
    assert "wieght" in str(caught.value)
    assert "weight" in str(caught.value)


def test_a_single_underscore_is_a_wrong_name():
    said = refused(environment={"CACHEPROXY_EXACT_TTL": "5"})
    assert "`exact_ttl`" in said
    assert "`exact.ttl`" in said


@pytest.mark.parametrize("name", [n for n in names() if "[]" not in n and n != "upstreams"])
def test_every_name_can_be_set_in_every_source(file, name):
    """The same spelling everywhere: dots in a file's tree, `__` in a variable."""
    kind = names()[name][0]
    value = {"duration": "7s", "size": "7MiB", "number": "7", "true or false": "true"}.get(kind, "")
    if kind.startswith("list"):
        value = {
            "exact.volatile_headers": '["x-a"]',
            "exact.ignore_fields": '["/a"]',
            "semantic.guards": '["numbers"]',
        }.get(name, '["/a/b"]')
        value = {
            "access.key_groups": '[{"name": "a", "keys": ["sk-1"]}]', "savings.prices": '[{"model": "m"}]',
            "kb.watch": '[{"name": "a", "path": "/a"}]', "kb.extract": '[{"into": "tags", "pointer": "/a"}]',
            "rules": '[{"set": {"ttl": 5}}]', "prefix.rules.patterns": '[{"pattern": "a", "action": "drop"}]',
        }.get(name, value)  # fmt: skip
        expected = orjson.loads(value)
    else:
        expected = None
    value = value or ("words, many" if kind in ("text", "secret text") else kind.split("`")[-2])
    value = {"admin.host": "127.0.0.2", "exact.ttl": "6s", "limits.answer_bytes": "5MiB"}.get(name, value)
    value = {"exact.max_ttl": "2h", "limits.recording_bytes": "64MiB"}.get(name, value)
    value = {
        "semantic.threshold": "0.95",
        "semantic.max_error": "0.03",
        "semantic.sample": "0.5",
        "semantic.verifier": "judge",
        "semantic.verifier_least": "0.4",
        "semantic.verifier_certain": "0.98",
        "semantic.url": "http://e:1",
        "flight.semantic": "on",
        "admission.shed_threshold": "0.9",
        "admission.overload.utilisation": "0.7",
        "admission.overload.room": "0.6",
        "health.retry_budget": "0.5",
        "health.probe": "/health",
        "jobs.path": "/_jobs",
    }.get(name, value)
    value = {"redis.url": "redis://h:1", "redis.prefix": "ours"}.get(name, value)
    value = {"exact.refresh": "0.5", "replay.pace": "recorded", "access.scope": "tenant"}.get(name, value)
    group, _, key = name.partition(".")
    variable = f"CACHEPROXY_{name.replace('.', '__')}".upper()
    inner = f'"{value}"' if expected is None else value
    ways = [
        resolve({"upstreams": [BACKEND], name: value if expected is None else expected}, None, {}),
        resolve({"upstreams": [BACKEND]}, file(f"{group}: {{{key}: {inner}}}" if key else f"{group}: {inner}"), {}),
        resolve({"upstreams": [BACKEND]}, None, {variable: value}),
    ]
    assert all(name in way.origins for way in ways)
    assert ways[0].settings == ways[1].settings == ways[2].settings
    if kind != "true or false" and name != "exact.mode" and "debug" not in kind:
        assert ways[0].settings != resolve({"upstreams": [BACKEND]}, None, {}).settings


# --- what is not ours ------------------------------------------------------------------------------------------------

SERVICE = {
    "CACHEPROXY_SERVICE_HOST": "10.0.0.1", "CACHEPROXY_SERVICE_PORT": "8800", "CACHEPROXY_SERVICE_PORT_HTTP": "8800",
    "CACHEPROXY_PORT": "tcp://10.0.0.1:8800", "CACHEPROXY_PORT_8800_TCP": "tcp://10.0.0.1:8800",
    "CACHEPROXY_PORT_8800_TCP_PROTO": "tcp", "CACHEPROXY_PORT_8800_TCP_PORT": "8800",
    "CACHEPROXY_PORT_8800_TCP_ADDR": "10.0.0.1",
}  # fmt: skip
"""What Kubernetes sets in the pods of a namespace that has a Service called ``cacheproxy``."""


@pytest.mark.parametrize("service", ["CACHEPROXY", "CACHEPROXY_ADMIN", "CACHEPROXY_REDIS_MASTER", "CACHEPROXY_2"])
def test_service_links_of_kubernetes_are_ignored(service):
    """Of a Service called ``cacheproxy``, and of those whose name begins so (a chart's second Service)."""
    links = {name.replace("CACHEPROXY", service, 1): value for name, value in SERVICE.items()}
    resolved = resolve({"upstreams": [BACKEND]}, None, links)
    assert resolved.origins == {"upstreams": "flag"}
    assert resolved.settings.listen.port == 8800


@pytest.mark.parametrize("name", ["CACHEPROXY_PORT", "CACHEPROXY_HOST", "CACHEPROXY_ADMIN_PORT", "CACHEPROXY_FOO"])
def test_a_persons_variable_is_not_taken_for_a_service_link(name):
    """``CACHEPROXY_PORT=9000`` is a wrong name for the port, and must not be passed over in silence."""
    said = refused(environment={name: "9000"})
    assert name in said
    assert "nearest known one" in said


def test_other_programs_variables_are_ignored():
    environment = {"CACHEPROXYX_EXACT__TTL": "1", "cacheproxy_exact__ttl": "1", "PATH": "/bin", "OPENAI_API_KEY": "x"}
    assert resolve({"upstreams": [BACKEND]}, None, environment).origins == {"upstreams": "flag"}


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "exact:\n", "exact: {}\n", "exact: {ttl: }\n", "{}"])
def test_an_empty_file_or_group_is_no_mistake(file, text):
    assert resolve({"upstreams": [BACKEND]}, file(text), {}).settings.exact.ttl == 3600


@pytest.mark.parametrize("text", ["- 1\n- 2", "just text", "7", b"\xff\xfe", "a: [", "a: 'x", "a: b: c", "\tx: 1"])
def test_a_file_that_is_no_mapping_is_refused_in_one_sentence(file, text):
    path = file(text)
    assert str(path) in refused(config=path)


def test_a_missing_file_is_refused_in_one_sentence(tmp_path):
    said = refused(config=tmp_path / "nowhere.yaml")
    assert "nowhere.yaml" in said
    assert "No such file" in said


def test_a_broken_file_does_not_show_its_secrets(file):
    """The message tells the place, not what stands there."""
    with pytest.raises(ConfigurationError) as caught:
        resolve({"upstreams": [BACKEND]}, file('admin:\n  token: "hunter2-hunter2\nexact: {}\n'), {})
    assert "hunter2" not in str(caught.value)


def test_a_file_cannot_make_objects(file, tmp_path):
    """B86: a YAML tag runs nothing."""
    mark = tmp_path / "ran"
    with pytest.raises(ConfigurationError, match="YAML"):
        resolve({"upstreams": [BACKEND]}, file(f"exact: !!python/object/apply:os.mkdir ['{mark}']"), {})
    assert not mark.exists()
