"""The operator's regular expressions, compiled by RE2: linear time whatever the text. Imported by who has some only."""

from cacheproxy.core.texts import Regex


def compiled(pattern: str) -> Regex | str:
    """`pattern` compiled; or what is wrong with it, in words that follow its name."""
    import re2

    options = re2.Options()
    options.log_errors = False  # it would write the pattern to standard error
    try:
        regex = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        return f"is no regular expression as RE2 reads it: {reason.decode() if isinstance(reason, bytes) else reason}"
    if regex.fullmatch(""):
        return "must not match an empty text"
    found: Regex = regex
    return found
