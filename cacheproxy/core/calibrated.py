"""What the default embedder serves from each threshold on: (threshold, served, wrong). Written by
``python -m tests.quality --write``."""

NAME, REVISION, DIM = "sentence-transformers/all-MiniLM-L6-v2", "3ca066e74e182fa9", 384

POINTS: tuple[tuple[float, int, int], ...] = (
    (0.85, 2326, 77),
    (0.86, 2174, 61),
    (0.87, 2033, 54),
    (0.88, 1878, 40),
    (0.89, 1718, 32),
    (0.9, 1565, 27),
    (0.91, 1391, 15),
    (0.92, 1227, 14),
    (0.93, 1053, 11),
    (0.94, 864, 6),
    (0.95, 664, 4),
    (0.96, 477, 5),
    (0.97, 316, 5),
    (0.98, 170, 2),
    (0.99, 42, 0),
)
