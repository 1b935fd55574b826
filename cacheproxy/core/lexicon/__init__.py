"""What the guards of `core.likeness` know about words, language by language. The words themselves are data modules."""

from cacheproxy.core.lexicon.lexicon import LANGUAGES, Lexicon, Word, lexicon

__all__ = ["LANGUAGES", "Lexicon", "Word", "lexicon"]
