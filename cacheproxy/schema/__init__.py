"""The whole configuration as frozen models: every name, its default and its meaning, once."""

from cacheproxy.schema.names import names
from cacheproxy.schema.settings import Settings
from cacheproxy.schema.upstreams import HealthSettings, UpstreamSettings

__all__ = ["HealthSettings", "Settings", "UpstreamSettings", "names"]
