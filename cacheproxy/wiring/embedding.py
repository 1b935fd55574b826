"""Which embedder the settings name, and whether what it needs is installed."""

import logging
import os
from importlib.util import find_spec
from pathlib import Path

from cacheproxy.core.calibration import SHIPPED, Calibration, read, threshold_for
from cacheproxy.core.model import Identity
from cacheproxy.core.rules import Reach
from cacheproxy.errors import ConfigurationError
from cacheproxy.ports import Embedder
from cacheproxy.schema import Settings

ESTIMATE = 0.5
"""The confidence of a bound that is the likeliest share."""
MOST_THREADS = 4
"""Beyond that short questions are embedded no sooner."""
log = logging.getLogger("cacheproxy")

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


def calibration(settings: Settings) -> Calibration:
    """What is known of the errors of an embedder. Raises `ConfigurationError`."""
    path = settings.semantic.calibration
    if path is None:
        return SHIPPED
    try:
        return read(Path(path).read_bytes())
    except OSError as error:
        raise ConfigurationError(f"`semantic.calibration`: cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f"`semantic.calibration`: {path}: {error}") from None


def threshold(settings: Settings, known: Calibration, identity: Identity) -> float | None:
    """The similarity that keeps wrong answers within `semantic.max_error`; None if that is not asked for, or not
    known."""
    told = settings.semantic
    if told.max_error is None:
        return None
    chosen, sure = threshold_for(identity, told.max_error, known), "with 95 % confidence"
    if chosen is None:  # so few were wrong that more pairs would be needed to be sure
        chosen, sure = threshold_for(identity, told.max_error, known, ESTIMATE), "as an estimate"
    if chosen is None:
        log.warning(
            "no threshold is known that keeps wrong answers of %s within `semantic.max_error`; %g is used "
            "(`cacheproxy tune` finds one)", identity.name, told.threshold,
        )  # fmt: skip
        return None
    stated = told.threshold if "threshold" in told.model_fields_set else 0.0
    log.info(
        "questions are the same from a similarity of %g on: wrong are %g at most, %s", chosen, told.max_error, sure
    )
    return max(chosen, stated)


def _processors() -> int:
    """How many this process may use, `MOST_THREADS` at most."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, MOST_THREADS)
