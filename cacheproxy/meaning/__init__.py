"""Questions found by what they mean. Needs the extra `semantic`; imported only where that layer is on."""

import os

# One matrix of some thousand rows is searched sooner by one thread than by several that wait for each other on a busy
# machine. Read when numpy is imported, which nothing outside of this room does.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
