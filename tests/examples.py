"""How much the property tests try: the same examples and operations in every run, many more and others in `make soak`.

`CACHEPROXY_EXAMPLES` multiplies the examples (more than 1: drawn anew in each run), `CACHEPROXY_OPERATIONS` is the
length of a random run of operations, `CACHEPROXY_SECONDS` that of a run against the clock, `CACHEPROXY_SEED` chooses
which.
"""

import os

from hypothesis import HealthCheck, settings

NAMES = ("CACHEPROXY_EXAMPLES", "CACHEPROXY_OPERATIONS", "CACHEPROXY_SECONDS", "CACHEPROXY_SEED")
"""To a proxy that a test starts they would be settings."""
TIMES = int(os.environ.get("CACHEPROXY_EXAMPLES", "1"))
OPERATIONS = int(os.environ.get("CACHEPROXY_OPERATIONS", "3000"))
SECONDS = int(os.environ.get("CACHEPROXY_SECONDS", "6"))
SEED = int(os.environ.get("CACHEPROXY_SEED", "1"))

_UNCHECKED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


def tries(count: int) -> settings:
    """So many examples, or as many times that as are wanted."""
    return settings(
        max_examples=count * TIMES, derandomize=TIMES == 1, deadline=None, database=None, print_blob=True,
        suppress_health_check=_UNCHECKED, report_multiple_bugs=False,
    )  # fmt: skip
