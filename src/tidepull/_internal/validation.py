"""What is wrong with a value, in words: msgspec's messages for people who do not know its types."""

from __future__ import annotations

import re
import reprlib
from typing import Any

_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table of names and values",
    "null": "null",
}
_BOUNDS = {" <=": " of at most", " >=": " of at least", " <": " below", " >": " above"}


def is_unicode(text: str) -> bool:
    r"""Whether a text can be written as UTF-8.

    >>> is_unicode("cafe"), is_unicode("\N{SMILE}"), is_unicode("half a pair: \ud800")
    (True, True, False)
    """
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(value: Any) -> str:
    """A value as it is shown in a sentence: short, whatever it is.

    >>> shown("x" * 1000), shown(10**5000)
    ("'xxxxxxxxxxxx...xxxxxxxxxxxxx'", 'a value of int')
    """
    try:
        return " ".join(reprlib.repr(value).split())
    except Exception:  # Python writes no number of more than 4,300 digits
        return f"a value of {type(value).__name__}"


def in_words(message: str, patterns: dict[str, str] | None = None) -> tuple[str, str]:
    """Where the value is, and what it must be.

    Parameters
    ----------
    message : str
        The message of a `msgspec.ValidationError`.
    patterns : dict of str to str, optional
        What regular expressions allow, in words.

    Returns
    -------
    tuple of str
        The place (empty for the whole), and the rest of a sentence about it.

    Examples
    --------
    >>> in_words("Expected `int | null`, got `str` - at `$.arms[1].size`")
    ('arms[1].size', 'must be a whole number')
    >>> in_words("Expected `str` of length <= 256 - at `$.id`")
    ('id', 'must be text of length at most 256')
    >>> in_words("Object contains unknown field `colour`")
    ('', "has no field 'colour'")
    """
    sentence, _, where = message.replace(" - at `key` in `", " - at `").partition(" - at `")
    place = where.rstrip("`").removeprefix("$").removeprefix(".")
    if match := re.fullmatch(r"Object (contains unknown|missing required) field `(.*)`", sentence):
        return place, f"{'has no field' if match[1][0] == 'c' else 'needs the field'} '{match[2]}'"
    if match := re.fullmatch(r"Expected `(.*?)`( .*?)?(?:, got .*)?", sentence):
        kinds = [_TYPES.get(kind, kind) for kind in match[1].split(" | ") if kind != "null"]
        limits = re.sub(r" [<>]=?", lambda sign: _BOUNDS[sign[0]], match[2] or "")
        limits = limits.replace("length of", "length")
        if (pattern := re.fullmatch(r" matching regex '(.*)'", match[2] or "")) is not None:
            known = (patterns or {}).get(pattern[1].replace("\\\\", "\\"))
            return place, f"must be {known or f'text that matches {pattern[1]}'}"
        return place, f"must be {' or '.join(kinds)}{limits.removesuffix('.0')}"
    if sentence.endswith("out of range"):
        return place, "is out of range"
    sentence = sentence[:1].lower() + sentence[1:]
    return place, f"is wrong: {sentence}" if sentence.startswith("invalid") else sentence
