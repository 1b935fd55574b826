"""What the default embedder serves from each threshold on: (threshold, served, wrong). Written by
``python -m tests.quality --write``."""

NAME, REVISION, DIM = "sentence-transformers/all-MiniLM-L6-v2", "3ca066e74e182fa9", 384

POINTS: tuple[tuple[float, int, int], ...] = (
    (0.85, 2329, 78),
    (0.86, 2177, 62),
    (0.87, 2037, 56),
    (0.88, 1882, 42),
    (0.89, 1723, 34),
    (0.9, 1569, 29),
    (0.91, 1395, 17),
    (0.92, 1231, 16),
    (0.93, 1056, 12),
    (0.94, 867, 7),
    (0.95, 666, 5),
    (0.96, 478, 6),
    (0.97, 316, 5),
    (0.98, 170, 2),
    (0.99, 42, 0),
)
