"""The guards of `core.likeness`, a file each: what they read in a text, and whether two texts differ in it. Pure."""
