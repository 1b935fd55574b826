"""What the configuration says of knowledge bases."""

import pytest

from cacheproxy.errors import ConfigurationError
from cacheproxy.settings import resolve
from cacheproxy.wiring.terms import terms


def test_nothing_is_watched_by_default():
    told = resolve({"upstreams": ["http://backend"]}, None, {}).settings.kb
    assert (told.watch, told.watch_interval, told.events) == ((), 2.0, True)


def test_folders_are_named(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("upstreams: [http://b]\nkb: {watch: [{name: faq, path: /srv/faq}], watch_interval: 500ms}\n")
    told = resolve({}, file, {}).settings.kb
    assert [(one.name, one.path) for one in told.watch] == [("faq", "/srv/faq")]
    assert told.watch_interval == 0.5


def test_places_of_names_are_read(tmp_path):
    file = tmp_path / "c.yaml"
    row = '{into: documents, pattern: \'<doc id="([^"]+)"\'}'
    rule = f"{{match: {{path: /v1/x}}, set: {{extract: [{row}]}}}}"
    file.write_text(f"upstreams: [http://b]\nkb: {{extract: [{{into: kb, pointer: /a/*/b~1c}}]}}\nrules: [{rule}]\n")
    told = terms(resolve({}, file, {}).settings, b"")
    assert [(one.into, one.path, one.regex) for one in told.extract] == [("kb", ("a", "*", "b/c"), None)]
    (place,) = told.rules[0].settles.extract
    assert (place.into, place.path, place.regex.pattern) == ("documents", (), '<doc id="([^"]+)"')


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{watch: [{name: a, path: /a}, {name: a, path: /b}]}", "two folders"), ("{watch: [{name: a}]}", "path"),
        ("{watch: [{name: '', path: /a}]}", "name"), ("{watch_interval: 0}", "watch_interval"),
        ("{watch: [{name: a, path: /a, pth: /b}]}", "pth"), ("{max_files: 0}", "max_files"),
        ("{extract: [{into: documents}]}", "where the names stand"), ("{extract: [{into: docs, pointer: /a}]}", "into"),
        ("{extract: [{pointer: /a}]}", "into"), ("{extract: [{into: kb, pointer: a}]}", "JSON pointer"),
        ("{extract: [{into: kb, pattern: '('}]}", "regular expression"),
        ("{extract: [{into: kb, pattern: 'a*'}]}", "empty text"), ("{extract: [{into: kb, pattern: ''}]}", "pattern"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(tmp_path, text, says):
    file = tmp_path / "c.yaml"
    file.write_text(f"upstreams: [http://b]\nkb: {text}\n")
    with pytest.raises(ConfigurationError, match=says):
        resolve({}, file, {})
