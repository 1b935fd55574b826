"""The pages and example files that are written from the code say what the code says."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest
import yaml

from cacheproxy import settings
from cacheproxy.core import quantities
from cacheproxy.settings import Settings, names, resolve
from tests.rig import ROOT

CONFIGS = sorted(p for p in ROOT.glob("configs/*.yaml") if not p.stem.startswith("compose"))


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_the_generated_pages_are_those_of_this_code():
    """If this fails: ``python docs/generate.py``."""
    done = run("--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_page_that_differs_is_named_and_written_anew(generate, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    for name in generate.PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    page = tmp_path / "docs" / "reasons.md"
    page.write_text(page.read_text() + "\nMore.\n")
    (tmp_path / "docs" / "metrics.md").unlink()
    capsys.readouterr()
    assert generate.main(["--check"]) == 1
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()] == ["docs/reasons.md", "docs/metrics.md"]
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


def test_other_arguments_are_a_wrong_call():
    assert run("--chekc").returncode == 2


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("duration", 0.25, "250ms"), ("duration", 0.0, "0"), ("duration", 300.0, "5m"), ("duration", 3630.0, "3630s"),
        ("duration", 30 * 86_400.0, "30d"), ("size", 256 * 2**20, "256MiB"), ("size", 4 * 2**30, "4GiB"),
        ("size", 1000, "1000"), ("number", 1.0, "1"), ("true or false", True, "true"), ("text", "auto", "auto"),
    ],
)  # fmt: skip
def test_a_default_is_shown_as_one_would_write_it(generate, kind, value, text):
    """And read back it is the same value."""
    assert generate.human(kind, value) == text
    if kind == "duration":
        assert quantities.duration(text) == pytest.approx(value)
    if kind == "size":
        assert quantities.size(text) == value


def test_every_name_is_on_the_configuration_page_with_its_variable():
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    for name, (_, _, meaning) in names().items():
        assert f"| `{name}` |" in page
        assert meaning, f"{name} has no meaning"
        if "[]" not in name:
            assert f"`CACHEPROXY_{name.upper().replace('.', '__')}`" in page


def test_the_example_on_the_configuration_page_loads(tmp_path):
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    example = tmp_path / "example.yaml"
    example.write_text(re.search(r"```yaml\n(.*?)```", page, re.DOTALL).group(1))
    loaded = resolve({}, example, {}).settings
    assert [u.url for u in loaded.upstreams] == ["http://gpu-1:8000", "http://gpu-2:8000"]
    assert (loaded.upstreams[1].weight, loaded.exact.ttl, loaded.limits.idle_timeout) == (2, 1800, 90)
    assert loaded.store.memory_bytes == 512 * 2**20


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_example_file_loads(path):
    resolved = resolve({}, path, {})
    assert resolved.settings.upstreams
    assert all(origin == f"file {path}" for origin in resolved.origins.values())


def test_the_example_files_are_there():
    assert {"minimal.yaml", "embedded.yaml"} <= {path.name for path in CONFIGS}


def test_minimal_and_embedded_are_the_defaults():
    """The one names the backend only, the other every name; both are the same configuration."""
    bare = Settings(upstreams=["http://127.0.0.1:8000"])
    for name in ("minimal.yaml", "embedded.yaml"):
        assert resolve({}, ROOT / "configs" / name, {}).settings == bare
    assert list(yaml.safe_load((ROOT / "configs" / "minimal.yaml").read_text())) == ["upstreams"]
    text = (ROOT / "configs" / "embedded.yaml").read_text("utf-8")
    written = set(settings._flat(yaml.safe_load(text)))
    known = {name for name in names() if "[]" not in name}
    assert written == known - {name for name in known if names()[name][1] is None} | {"upstreams"}
    assert "# token:" in text
