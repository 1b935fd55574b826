"""cacheproxy: a caching sidecar between any OpenAI client and any OpenAI-compatible backend."""

__version__ = "0.1.0"
