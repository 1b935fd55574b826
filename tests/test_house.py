"""The rules of the house that linters, types and the check on layers cannot say."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cacheproxy.core.outcome import Reason
from tests.rig import ROOT

SOURCES = sorted((ROOT / "cacheproxy").rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 320, 60

FORBIDDEN_MODULES = {
    "pickle", "_pickle", "cPickle", "dill", "cloudpickle", "jsonpickle", "joblib", "shelve", "dbm", "marshal", "code",
}  # fmt: skip
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "literal_eval", "ast.literal_eval", "yaml.load", "yaml.load_all",
    "yaml.full_load", "yaml.unsafe_load", "yaml.UnsafeLoader", "yaml.Loader", "yaml.FullLoader", "builtins.eval",
    "builtins.exec",
}  # fmt: skip
HEAVY = ("torch", "numpy", "sentence_transformers", "onnxruntime", "tokenizers", "huggingface_hub", "redis", "yaml")


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def dangers(source: str) -> Iterator[str]:
    """Everything in `source` that can turn stored or sent bytes into code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.partition(".")[0] in FORBIDDEN_MODULES)
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").partition(".")[0] in FORBIDDEN_MODULES:
                yield node.module
            yield from (a.name for a in node.names if f"{node.module}.{a.name}" in FORBIDDEN_CALLS)
        elif isinstance(node, ast.Name | ast.Attribute) and _dotted(node) in FORBIDDEN_CALLS:
            yield _dotted(node)
        elif isinstance(node, ast.Constant) and node.value in FORBIDDEN_MODULES - {"code"}:
            yield node.value


def lengths(source: str) -> Iterator[tuple[str, int]]:
    """Each function with its lines, decorators included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            yield node.name, node.end_lineno - first + 1


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_sources_are_found():
    assert {"cacheproxy/wiring/house.py", "cacheproxy/core/codec.py"} <= {name_of(path) for path in SOURCES}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_files_and_functions_are_short(path):
    """A file has one noun and at most 320 lines, a function at most 60."""
    source = path.read_text("utf-8")
    assert len(source.splitlines()) <= LONGEST_FILE
    assert [pair for pair in lengths(source) if pair[1] > LONGEST_FUNCTION] == []


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_nothing_stored_or_sent_can_become_code(path):
    """B86: no pickle, no eval, no unsafe YAML, anywhere."""
    assert list(dangers(path.read_text("utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle", "import os, pickle as p", "from pickle import loads", "import marshal", "import shelve",
        "from dbm import open", "eval('1')", "f = eval", "exec(x)", "compile(x, '', 'exec')", "__import__('os')",
        "import ast\nast.literal_eval('1')", "from ast import literal_eval", "import yaml\nyaml.load(x)",
        "from yaml import load", "yaml.unsafe_load(x)", "yaml.load(x, Loader=yaml.FullLoader)",
        "import importlib\nimportlib.import_module('pickle')", "def f():\n    import cloudpickle",
    ],
)  # fmt: skip
def test_the_search_for_code_finds_it(source):
    assert list(dangers(source))


@pytest.mark.parametrize("source", ["import json", "yaml.safe_load(x)", "re.compile(x)", "error.code", "code = 5"])
def test_the_search_for_code_finds_nothing_else(source):
    assert list(dangers(source)) == []


def test_the_length_of_a_function_is_that_of_all_its_lines():
    source = "@decorated(\n    1,\n)\ndef f():\n" + "    x = 1\n" * 58 + "\n\nasync def g():\n    pass\n"
    assert list(lengths(source)) == [("f", 62), ("g", 2)]


def test_every_reason_is_explained_and_has_its_row():
    """Enum member = metric label = word in the header = row in the docs, and each only once."""
    page = (ROOT / "docs" / "reasons.md").read_text("utf-8")
    words = [reason.word for reason in Reason]
    assert len(set(words)) == len(words)
    for reason in Reason:
        assert reason.word == reason.name.lower()
        assert f"| `{reason.word}` | {reason.explanation} |" in page
    assert sum(line.startswith("| `") for line in page.splitlines()) == len(words)


SEEN = """
import sys
from cacheproxy import cli, wiring
from cacheproxy.settings import resolve
wiring.House(resolve({"upstreams": ["http://127.0.0.1:1"], "store.data_dir": sys.argv[1]}, None, {}).settings)
import json
print(json.dumps(sorted(sys.modules)))
"""


def test_starting_the_proxy_imports_nothing_heavy(tmp_path):
    """What is not used is not paid for, also where it is installed: here each is, as an empty module."""
    for name in HEAVY:
        (tmp_path / f"{name}.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", SEEN, str(tmp_path / "data")], cwd=ROOT, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}, check=True,
    )  # fmt: skip
    modules = set(json.loads(done.stdout))
    assert "cacheproxy.wiring" in modules
    assert modules & set(HEAVY) == set()
