"""Settings -> running objects. The only package that knows every room."""

from cacheproxy.wiring.house import House
from cacheproxy.wiring.running import Running, redacted, run
from cacheproxy.wiring.storage import CACHE_FILE, SECRET_FILE

__all__ = ["CACHE_FILE", "SECRET_FILE", "House", "Running", "redacted", "run"]
