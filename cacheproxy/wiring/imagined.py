"""The imagined proxy that a log is replayed into, put together as the one that serves is."""

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING

from cacheproxy.core import key
from cacheproxy.engine.binder import Binder
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.replaying import EMBEDDING, Replaying, Starts, unseen
from cacheproxy.engine.semantic import Matching
from cacheproxy.ports import Embedder
from cacheproxy.schema import Settings
from cacheproxy.wiring import terms

if TYPE_CHECKING:
    from cacheproxy.engine.alike import Alike

FEW = 2
"""Questions that are embedded together beside callers who wait for theirs."""


def imagined(settings: Settings) -> Replaying:
    """A proxy of these settings that nobody has asked yet."""
    binder = Binder(secrets.token_bytes(key.SECRET_BYTES), terms.terms(settings, b""))
    return Replaying(binder, terms.keeping(settings), terms.lasting(settings).allowance)


def matching(settings: Settings, chosen: float | None) -> Matching:
    """What holds for answers by meaning. `chosen`: the threshold that the embedder's calibration gives, if any."""
    told = terms.matching(settings)
    return told if chosen is None else replace(told, threshold=chosen)


async def alike(  # noqa: PLR0913 - one look, every fact about it
    binder: Binder, bounds: AsyncIterator[Bound], told: Matching, embedder: Embedder, *, gently: bool = False,
    starts: Starts = unseen,
) -> "Alike":  # fmt: skip
    """What finds answers by meaning among `bounds`. `gently`: other work goes on in this process. Raises `Trouble`."""
    from cacheproxy.engine.alike import Alike, question_of
    from cacheproxy.meaning import tuning

    texts = {question.text async for bound in bounds if (question := question_of(binder, told, bound)) is not None}
    vectors = await tuning.vectors(embedder, texts, starts(EMBEDDING, len(texts)), FEW if gently else tuning.AT_ONCE)
    return Alike(binder, told, vectors)
