"""What the configuration says of long work that admin calls order."""

from pydantic import Field

from cacheproxy.schema.kinds import Duration, Size
from cacheproxy.schema.model import Model


class JobSettings(Model):
    ttl: Duration = 3600.0
    """How long a job that has ended can be asked about."""
    max_jobs: int = Field(default=100, ge=1, le=100_000)
    """Most jobs that are known at a time. Where more come, those that ended first are forgotten earlier."""
    max_bytes: Size = 128 * 2**20
    """Most bytes that they hold together: the requests of those that have not ended, and what came of the others."""
