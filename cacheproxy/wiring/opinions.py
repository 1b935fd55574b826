"""Second opinions, put together: the classifier, a model, the backend as judge."""

import asyncio
import logging

from cacheproxy.core.calibrated import NAME
from cacheproxy.core.rules import Opinion
from cacheproxy.engine.authority import Authority
from cacheproxy.engine.judge import Judge
from cacheproxy.engine.verdict import Bounds, GuardedJudge, GuardedVerifier, Verdicts
from cacheproxy.errors import ConfigurationError, Trouble
from cacheproxy.meaning.verifier import Classifier
from cacheproxy.ports import Backend, Verifier
from cacheproxy.schema import Settings
from cacheproxy.telemetry import Telemetry

log = logging.getLogger("cacheproxy")

LEAST, LEAST_OF_MODEL = 0.15, 0.5
SECONDS, SECONDS_OF_JUDGE = 0.25, 2.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
"""Seconds between the attempts to load what could not be loaded."""
SHIPPED = NAME.rpartition("/")[2].lower()
"""The embedding model whose similarities the classifier knows."""


class Opinions:
    """What the settings ask for. `verdicts` makes what the engine asks; `start` loads a model, in the background."""

    def __init__(self, settings: Settings, telemetry: Telemetry) -> None:
        told = settings.semantic
        if told.verifier is Opinion.CROSS_ENCODER and told.verifier_model is None:
            raise ConfigurationError("`semantic.verifier: cross-encoder` needs `semantic.verifier_model`")
        self._told = told
        self._telemetry = telemetry
        self._loading: asyncio.Task[None] | None = None
        is_model = told.verifier is Opinion.CROSS_ENCODER
        self._settings = settings
        self._least = least(settings)
        verifier = None if is_model else classifier(settings)
        seconds = told.verifier_timeout if told.verifier_timeout and is_model else SECONDS
        self._verifier = GuardedVerifier(verifier, seconds, telemetry)
        self._verdicts: Verdicts | None = None
        telemetry.left_alone("verifier", lambda: not self._verifier.breaker.closed)

    def verdicts(self, backend: Backend, authority: Authority) -> Verdicts:
        """What the engine asks."""
        told, judge = self._told, None
        if told.verifier is Opinion.JUDGE:
            seconds = told.verifier_timeout or SECONDS_OF_JUDGE
            judge = GuardedJudge(Judge(backend, authority, self._telemetry), seconds, self._telemetry)
            self._telemetry.left_alone("judge", lambda: not judge.breaker.closed)
        bounds = Bounds(self._least, certain=told.verifier_certain)
        self._verdicts = Verdicts(self._verifier, judge, bounds, self._telemetry)
        return self._verdicts

    def start(self) -> None:
        """Load the model, if there is one; until it is there nothing is found to be the same."""
        if self._told.verifier is Opinion.CROSS_ENCODER:
            self._loading = asyncio.get_running_loop().create_task(self._load())

    async def _load(self) -> None:
        pause = FIRST_PAUSE
        while True:
            made = verifier(self._settings)
            try:
                await made.warm()
            except Trouble as trouble:
                log.log(logging.WARNING if pause == FIRST_PAUSE else logging.DEBUG, "no second opinion: %s", trouble)
                await made.close()
            else:
                self._verifier.exchange(made)
                return
            await asyncio.sleep(pause)
            pause = min(pause * 4, LONGEST_PAUSE)

    async def close(self) -> None:
        """Let go."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        if self._verdicts is not None:
            await self._verdicts.close()
        else:
            await self._verifier.close()


def verifier(settings: Settings) -> Verifier:
    """The one that the settings name; of the judge, who is asked with a caller's credential, the one before it."""
    told = settings.semantic
    if told.verifier is not Opinion.CROSS_ENCODER or told.verifier_model is None:
        return classifier(settings)
    from cacheproxy.meaning.verifier_model import open_verifier

    return open_verifier(told.verifier_model, download=told.download)


def least(settings: Settings) -> float:
    """The probability from which on it holds two questions for the same."""
    told = settings.semantic
    if told.verifier_least is not None:
        return told.verifier_least
    return LEAST_OF_MODEL if told.verifier is Opinion.CROSS_ENCODER else LEAST


def classifier(settings: Settings) -> Classifier:
    """The one that is always there; the similarities of another embedding model tell it nothing."""
    told = settings.semantic
    return Classifier(known=told.url is None and told.model.rpartition("/")[2].lower() == SHIPPED)
