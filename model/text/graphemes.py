"""Characters as people see them: a letter with its accents, an emoji of several code points.

The rules of Unicode Standard Annex 29, by the categories of :mod:`unicodedata`. Letters that join
without a mark, such as conjuncts of Devanagari, count as several characters.
"""

from __future__ import annotations

import unicodedata
from itertools import takewhile

_JOINER = "\u200d"
_EXTENDING = frozenset("\u200c\u200d\uff9e\uff9f")  # besides marks, which have a category
_LONGEST = 64  # code points before an index that are looked at


def is_inside_character(text: str, index: int) -> bool:
    """Return whether ``index`` lies between a character and what combines with it."""
    if not 0 < index < len(text):
        return False
    before, after = text[index - 1], text[index]
    if before == "\r" and after == "\n":
        return True  # one line end
    if (before + after).isascii() or unicodedata.category(before) in ("Cc", "Zl", "Zp"):
        return False  # nothing combines with a line end or a tab
    if _is_extending(after):
        return True
    above = text[max(0, index - _LONGEST) : index][::-1]  # nearest first
    if before == _JOINER:  # two emoji; a joiner between letters of Arabic or Indic scripts ends one
        base = next((char for char in above if not _is_extending(char)), "")
        return _is_pictograph(base) and _is_pictograph(after)
    if _is_flag_half(after):
        return len([*takewhile(_is_flag_half, above)]) % 2 == 1
    return _joins_hangul(ord(before), ord(after))


def _is_extending(char: str) -> bool:
    """Return whether a code point combines with the one before it."""
    point = ord(char)
    is_skin_tone, is_tag = 0x1F3FB <= point <= 0x1F3FF, 0xE0020 <= point <= 0xE007F
    is_mark = unicodedata.category(char) in ("Mn", "Me", "Mc")
    return is_mark or char in _EXTENDING or is_skin_tone or is_tag


def _is_pictograph(char: str) -> bool:
    """Return whether a code point may be part of an emoji that is joined of several."""
    is_symbol = unicodedata.category(char) in ("So", "Sm", "Sk", "Cn") if char else False
    return is_symbol and ord(char) > 0xFF


def _is_flag_half(char: str) -> bool:
    return 0x1F1E6 <= ord(char) <= 0x1F1FF


def _joins_hangul(before: int, after: int) -> bool:
    """Return whether two jamo, or a syllable and a jamo, make one syllable."""
    is_leading, is_vowel = 0x1100 <= before <= 0x115F, 0x1160 <= before <= 0x11A7
    is_syllable = 0xAC00 <= before <= 0xD7A3
    is_open = is_syllable and (before - 0xAC00) % 28 == 0  # without a final consonant
    if 0x1160 <= after <= 0x11A7:
        return is_leading or is_vowel or is_open
    if 0x11A8 <= after <= 0x11FF:
        return is_vowel or is_syllable or 0x11A8 <= before <= 0x11FF
    return is_leading and (0x1100 <= after <= 0x115F or 0xAC00 <= after <= 0xD7A3)
