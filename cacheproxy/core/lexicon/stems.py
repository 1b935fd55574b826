"""Words of one family under one name: endings cut off, so that "verifying" and "verification" meet. Pure.

The stem is a name, not a word. Endings that make another word of it ("-er", "-ist", "-ism", "-ee") stay.
"""

_ENGLISH = (
    "ifications", "ification", "ications", "ication", "ations", "ation", "itions", "ition", "ements", "ement",
    "ments", "ment", "ically", "ances", "ance", "ences", "ence", "ingly", "edly", "ably", "able", "ible", "ness",
    "ings", "ing", "ions", "ion", "ally", "ies", "ied", "ous", "ily", "ely", "ed", "es", "ly", "ive", "al", "s", "y",
    "e",
)  # fmt: skip
_ENDINGS = {
    "de": "etest eten ete test ten te en er em es et st e n s t",
    "es": "mente ciones ción ados adas idos idas aron ieron ando iendo ado ada ido ida aba ará ían an en ó es as os ar "
    "er ir a o e s",
    "pt": "mente ções ção ados adas idos idas aram eram iram ando endo indo ado ada ido ida ava ará ões am em ou eu iu "
    "es as os ar er ir a o e s",
    "fr": "ements ement ations ation aient ait ais ent ons ez es er ir ées ée és é e s x",
}
_CUT = {language: tuple(endings.split()) for language, endings in _ENDINGS.items()}
_KEPT = 4
"""Characters that a stem has at least, where something was cut off."""
_WHOLE = frozenset({
    "university", "universe", "organic", "organ", "business", "news", "species", "series", "always", "during",
    "morning", "evening", "nothing", "something", "string", "spring", "general", "generation", "station", "state",
    "nation", "nature", "commission", "comment", "meeting", "process", "access", "address", "express", "success",
    "this", "bus", "gas", "plus", "status", "virus", "basis", "analysis", "physics", "politics", "mathematics", "apple",
    "apply", "policy", "police", "metal", "mental", "capital", "medal", "model", "moral", "personal", "person",
    "portal", "port", "pass", "past", "paste", "passive", "mission", "passion", "relative", "relation", "native",
    "active", "action", "actual", "animal", "final", "fine", "federal", "hospital", "hospitable", "material",
    "maternity", "october", "vision", "version", "universal", "inches", "does", "goes", "yes", "less", "unless",
})  # fmt: skip


def stem(word: str, language: str) -> str:
    """The name of the family of `word`, which is in lower case."""
    if len(word) <= 3 or word in _WHOLE:
        return word
    if language == "en":
        return _english(word)
    if language == "de" and word.startswith("ge") and word.endswith(("t", "en")) and len(word) > _KEPT + 3:
        word = word[2:]
    for ending in _CUT.get(language, ()):
        if word.endswith(ending) and len(word) - len(ending) >= _KEPT:
            return word[: -len(ending)]
    return word


def _english(word: str) -> str:
    for _ in range(2):
        for ending in _ENGLISH:
            if word.endswith(ending) and len(word) - len(ending) >= (3 if len(ending) < 4 else _KEPT):
                if ending == "s" and word[-2] in "su":
                    continue
                word = word[: -len(ending)]
                break
        else:
            break
        if len(word) <= _KEPT:
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] in "iey" else word
