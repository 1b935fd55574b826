"""The whole configuration as frozen models: every name, its default and its meaning, once."""

from cacheproxy.schema.names import names
from cacheproxy.schema.settings import Settings, UpstreamSettings

__all__ = ["Settings", "UpstreamSettings", "names"]
