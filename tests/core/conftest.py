"""Property tests here run the same on slow and on fast machines, and leave nothing behind."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "core", deadline=None, database=None, report_multiple_bugs=False, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("core")
