"""Where the configuration comes from: the only reader of files and environment.

Defaults < YAML file < environment < flags. Every value knows where it came from; an unknown name is an error that
names the nearest known one.
"""

import difflib
import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cacheproxy.core.hosts import is_loopback
from cacheproxy.core.key import digest
from cacheproxy.errors import ConfigurationError
from cacheproxy.schema import Settings, names
from cacheproxy.schema.settings import AdminSettings

PREFIX = "CACHEPROXY_"
_KUBERNETES = re.compile(r"CACHEPROXY_(\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")
_KUBERNETES_URL = re.compile(r"(tcp|udp|sctp)://")
"""What Kubernetes sets in every pod for Services that are called ``cacheproxy…``; no configuration."""


class Resolved:
    """Settings and, for each dotted name that was set, where its value came from."""

    def __init__(self, settings: Settings, origins: Mapping[str, str]) -> None:
        self.settings = settings
        self.origins = dict(origins)


def resolve(
    flags: Mapping[str, Any],
    config: Path | None,
    environment: Mapping[str, str] | None = None,
    otherwise: Mapping[str, Any] | None = None,
) -> Resolved:
    """The configuration from all sources. `flags` and `otherwise` (what counts if nothing else is said) by dotted
    name. Raises `ConfigurationError`."""
    values: dict[str, Any] = dict(otherwise or {})
    origins: dict[str, str] = dict.fromkeys(values, "default")
    if config is not None:
        for name, value in _flat(_read_file(config)).items():
            values[name], origins[name] = value, f"file {config}"
    for name, value in _environment(os.environ if environment is None else environment).items():
        values[name], origins[name] = value, f"environment {PREFIX}{name.upper().replace('.', '__')}"
    for name, value in flags.items():
        values[name], origins[name] = value, "flag"
    _refuse_unknown(values, origins)
    try:
        settings = Settings.model_validate(_nest(values))
    except ValidationError as error:
        raise ConfigurationError(_explain(error, origins)) from None
    _refuse_contradictions(settings)
    return Resolved(settings, origins)


def _read_file(path: Path) -> dict[str, Any]:
    import yaml  # only who has a file pays for its reader

    try:
        value = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f": line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise ConfigurationError(f"{path} is not valid YAML{where}") from None
    if value is not None and not isinstance(value, dict):
        raise ConfigurationError(f"{path} must be a mapping of names to values")
    return value or {}


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        dotted = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            flat.update(_flat(value, f"{dotted}."))
        else:
            flat[dotted] = value
    return flat


def _nest(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or value == {}:
            continue
        *path, last = name.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return tree


def _environment(environment: Mapping[str, str]) -> dict[str, Any]:
    import orjson

    found: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or _KUBERNETES.fullmatch(variable) or _KUBERNETES_URL.match(text):
            continue
        name = variable[len(PREFIX) :].lower().replace("__", ".")
        if names().get(name, ("", None, ""))[0].startswith("list"):
            try:
                found[name] = orjson.loads(text) if text.lstrip().startswith("[") else _listed(text)
            except orjson.JSONDecodeError:
                raise ConfigurationError(f"{variable} must be texts separated by commas, or a JSON list") from None
        else:
            found[name] = text
    return found


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _refuse_unknown(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    known = [name for name in names() if "[]" not in name]
    groups = set(Settings.model_fields)
    for name, value in values.items():
        if name in known or (name in groups and (value is None or value == {})):
            continue
        nearest = difflib.get_close_matches(name, known, 1, 0.0)[0]
        hint = f"; {name} is a group of keys" if name in groups else f"; the nearest known one is `{nearest}`"
        raise ConfigurationError(f"unknown configuration key `{name}` ({origins[name]}){hint}")


def _explain(error: ValidationError, origins: Mapping[str, str]) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in problem["loc"])
    origin = next((origin for known, origin in origins.items() if f"{name}.".startswith(f"{known}.")), "default")
    if problem["type"] == "extra_forbidden":
        place = re.sub(r"\.\d+(?=\.|$)", "[]", name).rpartition(".")[0] + "."
        beside = [known[len(place) :].split(".")[0] for known in names() if known.startswith(place)]
        nearest = difflib.get_close_matches(str(problem["loc"][-1]), beside, 1, 0.0)[0]
        return f"unknown configuration key `{name}` ({origin}); the nearest known one is `{nearest}`"
    if name == "upstreams" and problem["type"] == "missing":
        return "no backend is given: say --upstream http://127.0.0.1:8000 (or `upstreams` in the configuration)"
    return f"configuration key `{name}` ({origin}): {problem['msg'].removeprefix('Value error, ')}"


def _refuse_contradictions(settings: Settings) -> None:
    if settings.exact.ttl > settings.exact.max_ttl:
        raise ConfigurationError("`exact.ttl` is longer than `exact.max_ttl`; raise the one or lower the other")
    _refuse_admin_contradictions(settings.admin)
    hosts = {settings.listen.host, settings.admin.host}
    one_address = len(hosts) == 1 or not hosts.isdisjoint({"0.0.0.0", "::"})  # noqa: S104 - looked at, not bound
    if settings.listen.port and settings.listen.port == settings.admin.port and one_address:
        raise ConfigurationError("`listen.port` and `admin.port` are the same; choose another for one of them")
    _refuse_group_contradictions(settings)
    if settings.limits.answer_bytes > settings.limits.recording_bytes:
        raise ConfigurationError(
            "`limits.answer_bytes` is larger than `limits.recording_bytes`; no answer could be kept"
        )


def _refuse_admin_contradictions(told: AdminSettings) -> None:
    tokens = (told.token, told.token_file, told.read_token, told.read_token_file)
    if tokens == (None, None, None, None) and not is_loopback(told.host):
        raise ConfigurationError(
            f"`admin.host` is {told.host}, which others can reach, and `admin.token` is not set; "
            "set a token or listen on 127.0.0.1"
        )
    if told.token is not None and told.token == told.read_token:
        raise ConfigurationError("`admin.token` and `admin.read_token` are the same; what it may do would be unclear")


def _refuse_group_contradictions(settings: Settings) -> None:
    groups = [group.name for group in settings.access.key_groups]
    keys = [(key.get_secret_value(), group.name) for group in settings.access.key_groups for key in group.keys]
    digests = [(digest(key), name) for key, name in keys]
    if len(set(groups)) < len(groups) or len({key for key, _ in digests}) < len(digests):
        raise ConfigurationError(
            "`access.key_groups` has a name, or a key, twice; whose group that is would be unclear"
        )
    for number, rule in enumerate(settings.rules, 1):
        for pattern in rule.match.key_group:
            if not any(fnmatchcase(group, pattern) for group in groups):
                raise ConfigurationError(
                    f"rule {number} speaks of the key group `{pattern}`, and `access.key_groups` has none"
                )
