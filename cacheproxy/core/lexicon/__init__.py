"""What the guards of `core.likeness` know about words, language by language. The words themselves are data modules."""

from cacheproxy.core.lexicon.lexicon import ENGLISH, LEXICONS, Lexicon, Word

__all__ = ["ENGLISH", "LEXICONS", "Lexicon", "Word"]
