"""Which embedder the settings name, and whether what it needs is installed."""

import os
from importlib.util import find_spec

from cacheproxy.core.model import Identity
from cacheproxy.core.rules import Reach
from cacheproxy.errors import ConfigurationError
from cacheproxy.ports import Embedder
from cacheproxy.schema import Settings

MOST_THREADS = 4
"""Beyond that short questions are embedded no sooner."""
EXTRA = "pip install 'cacheproxy[semantic]'"


def is_wanted(settings: Settings) -> bool:
    """Whether any request could be answered by meaning. By default where the extra is installed. Raises
    `ConfigurationError` if it is asked for and cannot be."""
    told = settings.semantic
    ruled = any(rule.set.semantic for rule in settings.rules)
    if told.mode is Reach.OFF and not ruled:
        return False
    if is_installed(settings):
        return True
    if ruled or "mode" in told.model_fields_set:
        raise ConfigurationError(f"`semantic.mode` needs the extra: {EXTRA}")
    return False


def is_installed(settings: Settings) -> bool:
    """Whether there is what runs the embedding model, or asks the server that does."""
    local = (find_spec("onnxruntime") and find_spec("tokenizers")) or find_spec("sentence_transformers")
    return bool(find_spec("numpy") and (settings.semantic.url is not None or local))


def embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name. May take long: a model that is not here is downloaded. Raises
    `Trouble`, with a message that says what to do."""
    told = settings.semantic
    if told.url is not None:
        from cacheproxy.meaning.remote import Remote

        return Remote(
            told.url, Identity(told.model, "", told.dimensions, prefix=told.prefix),
            api_key=told.api_key.get_secret_value() if told.api_key else None, most_chars=told.most_characters,
            memo=told.memo,
        )  # fmt: skip
    from cacheproxy.meaning.embedder import open_embedder

    return open_embedder(
        told.model, path=told.model_path, download=told.download, prefix=told.prefix,
        threads=told.threads or _processors(), window=told.window, memo=told.memo,
    )  # fmt: skip


def _processors() -> int:
    """How many this process may use, `MOST_THREADS` at most."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, MOST_THREADS)
