"""Write out any English text in words, with capitals and punctuation, sentence by sentence.

Layout and markup go (:mod:`paretone.front_end.markup`), characters are folded to a small set, what is not plain words
is classified and said (:mod:`paretone.front_end.tokenizer`), and only then sentences end: a full stop inside a token
is not one. Capitals stay, because they mark names and letters to be spelled; so do all audible marks. Characters
without English sound (emoji, other scripts) are dropped and reported.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from paretone.front_end.markup import END, plain_lines
from paretone.front_end.semiotic import Token
from paretone.front_end.tokenizer import tokens
from paretone.front_end.written_forms import GREEK, SIGNS, UNITS, begins_sentence

FOLDED = (
    dict.fromkeys("‘’‛′`´ʼ", "'")
    | dict.fromkeys("„«»″", '"')
    | dict.fromkeys("‐‑−﹣－", "-")
    | dict.fromkeys("•¿¡™®", " ")
    | {"‒": "–", "―": "—", "℃": "°C", "℉": "°F", "№": " number ", "μ": "µ", "µ": "µ", "Ω": "Ω", "º": "°", "〜": "~"}
    | {"∕": "/", "♭": " flat ", "♯": " sharp ", "♩": " quarter note "}
)
KEPT = frozenset(" \n\t.,;:?!'\"-–()[]{}&@#+=%^*_/\\|<>~“”—…·°★☆" + END + "".join(SIGNS))
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿⁱ]+")
_NOTE = re.compile(r"(?<=[a-z]{4})\^\d+(?=\W|$)|(?<=[.,;!?\"])\^\d+")
_SPACES_OF_DIGITS = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_LETTERS = re.compile(r"(?<![\w.'])([A-Z](?: [A-Z])+)(?![\w'.-]|\s*[=+<>^(])")
LONGEST_WORD = 80
"""Maximum length of an unbroken run in characters; longer ones (addresses, noise) are cut."""


@dataclass(frozen=True)
class Sentence:
    """A sentence in words, with the tokens that it was made of."""

    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class Written:
    """A text in spoken form, with the characters that cannot be spoken."""

    sentences: tuple[Sentence, ...]
    dropped: tuple[str, ...]
    """Each dropped character once, in order of appearance."""

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)


def fold_characters(text: str) -> tuple[str, tuple[str, ...]]:
    """Reduce ``text`` to Latin and Greek letters, digits and a few symbols; return it with the dropped characters."""
    found: list[str] = []
    dropped: dict[str, None] = {}
    text = _SPACES_OF_DIGITS.sub(",", text)
    text = _RAISED.sub(lambda match: "^" + unicodedata.normalize("NFKC", match[0]).replace("−", "-"), text)
    for character in text:
        stays = character in KEPT or (character.isalpha() and re.match("LATIN (?!SU)", unicodedata.name(character, "")))
        spoken = character if stays and character not in FOLDED else _fold(character, found[-1] if found else "")
        if spoken is None:
            dropped[character] = None
            spoken = " "
        found.append(spoken)
    return _NOTE.sub("", "".join(found)), tuple(dropped)


def _fold(character: str, before: str) -> str | None:
    if character in FOLDED:
        return FOLDED[character]
    if (character.isascii() and character.isalnum()) or character in KEPT or character.lower() in GREEK:
        return character
    if character.isspace():
        return " "
    category = unicodedata.category(character)
    if category in ("Mn", "Me", "Cf", "Cc", "Sk"):
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(character))
    expanded = unicodedata.normalize("NFKD", character)
    if "⁄" in expanded:
        return (" " if before.isalnum() else "") + expanded
    plain = "".join(part for part in expanded if unicodedata.category(part) != "Mn")
    if plain and plain != character:
        parts = [_fold(part, "") for part in plain]
        if all(part is not None for part in parts):
            return "".join(part for part in parts if part)
    return None


def write_out(text: str, british: bool = False) -> Written:
    """The sentences of ``text`` in words. Numeric dates have the month first, unless ``british``."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # No half of a pair stays.
    plain, dropped = fold_characters(plain_lines(unicodedata.normalize("NFC", text)))
    plain = re.sub(r"\s+", " ", plain).strip(f" {END}")
    plain = re.sub(rf"[^\s{END}]{{{LONGEST_WORD}}}", r"\g<0> ", plain)
    plain = re.sub(r"(?<!\d )(?<![\w)?])(?<!\d[\"'])–(?=(?:[A-Z]{1,2}\$|[.$£€¥₹])?\d)", "-", plain)
    plain = re.sub(r"(?:(?<=\b[a-z])|(?<=\b[a-z]\^\d))–(?=\d)", "-", plain)
    plain = re.sub(r"([$£€])\((\d[\d,.]*)\)", r"-\1\2", plain)
    plain = re.sub(r"(?<=[\w)])\*\*(?=[\w(-])", "^", plain)
    plain = re.sub(r"(?<=\.\d\d)(?:\^9(?=/gal)| 9/10(?=/| a | per ))", "9", plain)
    plain = re.sub(r"(?<=\d-\d\d)T(\d\d:\d\d(?::\d\d(?:\.\d+)?)?)Z?", r" \1", plain)
    plain = _LETTERS.sub(lambda match: ".".join(match[1].split()) + ".", plain)
    plain = re.sub(r"(?<![$£€\w])(\d+)-([a-z]+)\.?-([a-z]+)\b", _apart, plain)
    return Written(tuple(_sentences(list(tokens(plain, british)))), dropped)


def _apart(match: re.Match[str]) -> str:
    """ "32-year-old" in words that are classified one by one; a unit stays with its number."""
    unit = match[2] in UNITS or f"{match[2]} {match[3]}" in UNITS
    return f"{match[1]}{'-' if unit else ' '}{match[2]} {match[3]}"


def spell_numbers(text: str) -> str:
    """``text`` with only its numbers in words, for models that read everything else."""
    said = [one if any(map(str.isdigit, one.text)) else Token("", one.text, one.text) for one in tokens(text)]
    return _joined(said)


_MARKS = frozenset(".!?…")
_CLOSING = frozenset("\"'”’)]}")


def _sentences(found: list[Token]) -> Iterator[Sentence]:
    start, place = 0, 0
    while place < len(found):
        token = found[place]
        place += 1
        if token.text == END:
            yield from _sentence(found[start : place - 1], True)
            start = place
            continue
        if token.text in _MARKS and not token.kind:
            while place < len(found) and found[place].text in _MARKS | _CLOSING:
                place += 1
        elif not (token.ends and token.text.endswith(".")):
            continue
        else:
            while place < len(found) and found[place].text in _CLOSING:
                place += 1
        after = "".join(one.text for one in found[place : place + 4])
        if after and not after[0].isspace():
            continue
        following = after.lstrip(" \"'“‘([")
        if token.kind:
            word = re.match(r"[\w']+(?!\.\w)", following)
            begins = word and (begins_sentence(word[0]) or (token.text == "etc." and word[0][0].isupper()))
            if following and not begins:
                continue
        elif following[:1].islower() or following[:1] in (">", ",", ";"):
            continue
        yield from _sentence(found[start:place], bool(token.kind))
        start = place
    yield from _sentence(found[start:], False)


def _sentence(found: list[Token], ended: bool) -> Iterator[Sentence]:
    """``ended``: without a mark of its own, it gets a full stop."""
    text = _joined(found)
    for pattern, words in _POLISH:
        text = pattern.sub(words, text)
    text = text.strip()
    if not any(map(str.isalnum, text)):
        return
    if ended and (text[-1].isalnum() or text[-1] in ",;:—–-"):
        text = text.rstrip(" ,;:—–-") + "."
    yield Sentence(text, tuple(found))


def _joined(found: list[Token]) -> str:
    """The words of tokens; those of different tokens never become one word."""
    said = ""
    spoken = False
    """Whether the last token was said in other words."""
    for place, token in enumerate(found):
        words = token.words
        hyphen = words == "-" and not token.kind and said[-1:].isalnum()
        if hyphen and place + 1 < len(found) and found[place + 1].text[:1].isalnum():
            words = " " if spoken or found[place + 1].kind else words
        changed = bool(token.kind)
        if words == "/" and spoken and found[place - 1].kind == "measure":
            words = ", "
        if words == "/" and spoken and place + 1 < len(found) and found[place + 1].kind:
            words = " slash"
        if words and (changed or spoken) and words[0].isalnum() and (said[-1:].isalnum() or said[-1:] in tuple(".,")):
            said += " "
        said += words
        spoken = changed or (spoken and not words)
    return said


_POLISH: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<![^\s(\"'“])(?:--?|–)(?=\w)"), " "),
    (re.compile(r"(?<=\w)\(\)(?!\w)"), ""),
    (re.compile(r"\(\s*\)|\[\s*\]"), " "),
    (re.compile(r"\s+"), " "),
    (re.compile(r" +(?=[,.;:!?](?![.\w]))"), ""),
    (re.compile(r"(?<=,),+|^[,;: ]+|(?<=\b[A-Z]\.)\.(?!\.)"), ""),
)
