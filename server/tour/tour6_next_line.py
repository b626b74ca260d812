# Scene 6 of 6. At the end of this file, in the empty line of `shortest`, type `return min(`
# Offered: the rest of the line as grey text. Tab takes it; Alt-] shows another text.


def longest(words: list[str]) -> str:
    return max(words, key=len)


def shortest(words: list[str]) -> str:
    """Return the word with the fewest letters."""
    
