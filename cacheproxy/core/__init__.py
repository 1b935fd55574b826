"""The law of the house: no IO, no clock, no randomness, no logging; every function total over its types."""
