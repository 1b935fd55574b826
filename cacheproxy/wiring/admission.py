"""The gate before the backends, from settings."""

import math
from dataclasses import dataclass
from functools import partial

from cacheproxy.core import overload
from cacheproxy.core.queues import ClassTerms, Level, Queues, Terms
from cacheproxy.engine.admission import Admission, Waits
from cacheproxy.engine.pressure import Pressure
from cacheproxy.engine.rates import Rates, Toll
from cacheproxy.http.backend import Backends
from cacheproxy.ports import Clock
from cacheproxy.schema import Settings
from cacheproxy.schema.admission import AdmissionSettings, P0Settings, P1Settings, P2Settings
from cacheproxy.telemetry import Telemetry

_CLASSES = ("P0", "P1", "P2")


@dataclass(frozen=True, slots=True)
class Gate:
    """Who keeps it, and who watches how crowded it is, if anybody does."""

    admission: Admission
    pressure: Pressure | None

    def close(self) -> None:
        """Look no more."""
        self.admission.close()
        if self.pressure is not None:
            self.pressure.close()


def gate(
    settings: Settings, backends: Backends, clock: Clock, telemetry: Telemetry, rates: Rates | None = None
) -> Gate | None:
    """Keep one before `backends`; None where nothing waits."""
    told, places = settings.admission, backends.balance
    if told.mode == "off":
        if rates is not None:
            backends.admission = Toll(rates, backends.admission, clock)
        return None
    queues = Queues(Terms((_class(told.p0), _class(told.p1), _class(told.p2)), told.share))
    pressure = None
    if told.overload.mode == "on":
        terms = overload.Terms(
            told.overload.utilisation, told.overload.room, told.overload.budget, told.overload.first_byte,
            told.overload.patience, told.overload.calm,
        )  # fmt: skip
        pressure = Pressure(
            terms=terms, places=places, queues=queues, clock=clock,
            utilisation=backends.utilisation, listen=backends.listen,
        )  # fmt: skip
    admission = Admission(
        places=places, queues=queues, terms=_waits(told), clock=clock, journal=telemetry,
        level=(lambda: Level.NORMAL) if pressure is None else pressure.level, allotment=rates,
    )  # fmt: skip
    backends.admission = admission
    if pressure is not None:
        admission.began = pressure.began
    _publish(telemetry, admission, pressure)
    return Gate(admission, pressure)


def _waits(told: AdmissionSettings) -> Waits:
    return Waits(
        (told.p0.timeout, told.p1.timeout, told.p2.timeout), (told.p0.burst, told.p1.burst, told.p2.burst)
    )  # fmt: skip


def _class(told: P0Settings | P1Settings | P2Settings) -> ClassTerms:
    if isinstance(told, P0Settings):
        return ClassTerms(told.depth, told.bytes, told.weight)
    return ClassTerms(told.depth, told.bytes, told.weight, told.age or math.inf, told.bound or math.inf)


def _publish(telemetry: Telemetry, admission: Admission, pressure: Pressure | None) -> None:
    queues, places = admission.queues, admission.places
    for number, name in enumerate(_CLASSES):
        telemetry.queue(name, partial(queues.waiting, number))
    telemetry.gauge("slots", "Requests that the backends may be given together.", lambda: places.slots)
    telemetry.gauge("slots_used", "Requests that they have been given.", lambda: places.used)
    telemetry.gauge(
        "overload_level", "0: everything is let in; 1: no new P2; 2: no new P1 and P2.",
        lambda: int(pressure.now) if pressure is not None else 0,
    )  # fmt: skip
