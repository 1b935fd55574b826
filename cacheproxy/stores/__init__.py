"""Where answers are kept. Stores raise; they never forgive."""
