"""A failed run passes only if each test that failed in it passes alone."""

import os
import subprocess
import sys

import pytest

from tests.rig import ROOT

ONCE = "import pathlib\n\ndef test_it():\n    seen = pathlib.Path('seen')\n    if not seen.exists():\n        seen.touch()\n        assert 0\n"
OTHER = "def test_other():\n    pass\n"


def again(folder, files, *arguments):
    for name, text in files.items():
        (folder / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "tests.again", "-p", "no:randomly", f"--rootdir={folder}", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_what_fails_once_passes(tmp_path):
    code, said = again(tmp_path, {"test_a.py": ONCE, "test_b.py": OTHER}, "-n", "2")
    assert code == 0, said
    assert "once more, alone: 1" in said


@pytest.mark.parametrize(
    "files",
    [
        {"test_a.py": "def test_it():\n    assert 0\n", "test_b.py": OTHER},
        # A file that cannot be read the first time, and can the second: the others have not been run.
        {
            "test_a.py": "import pathlib\nseen = pathlib.Path('seen')\nif not seen.exists():\n    seen.touch()\n"
            "    raise RuntimeError\n\ndef test_it():\n    pass\n",
            "test_b.py": OTHER,
        },
        {},
        # Ids that differ from one process to the next.
        {
            "test_a.py": "import os\nimport pytest\n\n@pytest.mark.parametrize('n', [os.getpid()])\ndef test_it(n):\n"
            "    pass\n",
            "test_b.py": OTHER,
        },
    ],
    ids=["fails twice", "unreadable once", "nothing there", "ids that change"],
)  # fmt: skip
def test_nothing_else_passes(tmp_path, files):
    code, said = again(tmp_path, files, "-n", "2")
    assert code != 0, said


def test_names_are_those_of_tests_alone(tmp_path):
    from tests.again import names

    kept = tmp_path / "lastfailed"
    assert names(kept) == []
    kept.write_text('{"a.py::test": true}')
    assert names(kept) == ["a.py::test"]
    kept.write_text('{"a.py::test": true, "a.py": true}')
    assert names(kept) == []
