"""Every test once, side by side; what failed is run once more, alone. Arguments are pytest's.

A machine shared with others can make a deadline pass by itself: a test that fails both times has failed. Only failed
tests are run again: a run that ended in any other way (tests that could not be collected, a crash, a usage error) has
failed as it is, because what it left out would otherwise pass unseen.
"""

import json
import subprocess
import sys
from pathlib import Path

FAILED = 1
"""What pytest exits with when tests were run and some failed."""
MOST = 50
"""Failures up to which noise may be the reason."""
CACHE = Path(".pytest_cache/v/cache/lastfailed")


def names(failures: Path) -> list[str]:
    """The ids of the tests that failed in the last run; none if anything other than tests did."""
    try:
        failed = list(json.loads(failures.read_text("utf-8")))
    except (OSError, ValueError):
        return []
    return failed if all("::" in name for name in failed) and len(failed) <= MOST else []


def main(arguments: list[str]) -> int:
    """The exit code of the runs."""
    pytest = [sys.executable, "-m", "pytest"]
    CACHE.unlink(missing_ok=True)
    code = subprocess.run([*pytest, *arguments], check=False).returncode
    failed = names(CACHE) if code == FAILED else []
    if not failed:
        return code
    print(f"once more, alone: {len(failed)}", flush=True)
    return subprocess.run([*pytest, "-n", "0", *failed], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
