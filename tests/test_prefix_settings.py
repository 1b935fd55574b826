"""What can be said of the prefix layer, where, and what a wrong word is answered with."""

import pytest

from cacheproxy.core.prefix import Clock, Ids, Rules, Unit
from cacheproxy.errors import ConfigurationError
from cacheproxy.settings import resolve
from cacheproxy.wiring import terms

UPSTREAM = {"upstreams": ["http://127.0.0.1:8000"]}


def settings(**values):
    return resolve({**UPSTREAM, **{n.replace("__", "."): v for n, v in values.items()}}, None, {}).settings


def test_defaults_are_what_cannot_change_a_meaning():
    assert terms.prefix_rules(settings()) == Rules()
    assert Rules() == Rules(
        tools=True,
        newlines=True,
        unicode=True,
        nonces=True,
        clock=Clock.OFF,
        ids=Ids.OFF,
        patterns=(),
        tool_noise=False,
    )


def test_from_the_environment_and_a_file(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("prefix:\n  rules:\n    clock: off\n    tools: off\n    ids: drop\n  nonce_lines: x-acme\n")
    environment = {"CACHEPROXY_PREFIX__RULES__CLOCK": "coarsen", "CACHEPROXY_PREFIX__RULES__CLOCK_UNIT": "hour"}
    found = terms.prefix_rules(resolve(UPSTREAM, file, environment).settings)
    assert (found.clock, found.unit, found.tools, found.ids) == (Clock.COARSEN, Unit.HOUR, False, Ids.DROP)
    assert found.nonce_names[-1] == "x-acme"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("prefix__rules__clock", "second", "'off', 'coarsen' or 'move'"),
        ("prefix__rules__clok", "move", "the nearest known one is `prefix.rules.clock`"),
        ("prefix__rules__patterns", [{"pattern": "(", "action": "drop"}], "is no regular expression as RE2 reads it"),
        (
            "prefix__rules__patterns",
            [{"pattern": r"(a)\1", "action": "drop"}],
            "is no regular expression as RE2 reads it",
        ),
        ("prefix__rules__patterns", [{"pattern": "a*", "action": "drop"}], "must not match an empty text"),
        (
            "prefix__rules__patterns",
            [{"pattern": "a", "action": "drop", "text": "b"}],
            "`text` is for the action `replace`",
        ),
        ("prefix__rules__patterns", [{"pattern": "a"}], "prefix.rules.patterns.0.action"),
        ("prefix__routing", "random", "'affinity', 'round-robin' or 'least-inflight'"),
        ("prefix__load_bound", 0.5, "greater than or equal to 1"),
    ],
)
def test_a_wrong_word_is_named(name, value, said, capfd):
    """With the key, what it may be, and nothing on standard error from a library."""
    with pytest.raises(ConfigurationError) as error:
        settings(**{name: value})
    assert said in str(error.value)
    assert "prefix." in str(error.value)
    assert capfd.readouterr().err == ""


def test_a_row_says_only_what_it_says():
    rows = [{"match": {"model": "m"}, "set": {"prefix": {"clock": "move", "clock_unit": "hour", "patterns": False}}}]
    row = terms.terms(settings(rules=rows), b"").rules[0].settles
    assert dict(row.prefix) == {"clock": Clock.MOVE, "unit": Unit.HOUR, "patterns": ()}
