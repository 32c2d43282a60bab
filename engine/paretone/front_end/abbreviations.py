"""Abbreviations, initialisms and addresses of English text as words.

Letters to be named come out as single capitals ("T T S"), everything else keeps its case for the steps that follow.
"""

from __future__ import annotations

import re

from paretone.front_end.lexicon import Lexicon

TITLES = {
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miz",
    "Messrs": "Messieurs",
    "Prof": "Professor",
    "Rev": "Reverend",
    "Gen": "General",
    "Col": "Colonel",
    "Capt": "Captain",
    "Cmdr": "Commander",
    "Lt": "Lieutenant",
    "Sgt": "Sergeant",
    "Sen": "Senator",
    "Gov": "Governor",
    "Hon": "Honorable",
    "Mt": "Mount",
    "Ft": "Fort",
    "Fig": "Figure",
    "fig": "figure",
    "Eq": "Equation",
    "Sec": "Section",
    "Ch": "Chapter",
    "Vol": "Volume",
    "vol": "volume",
    "approx": "approximately",
    "vs": "versus",
    "cf": "compare",
}
"""Always followed by something: their full stop never ends a sentence."""

ENDINGS = {
    "Jr": "Junior",
    "Sr": "Senior",
    "etc": "et cetera",
    "Inc": "Incorporated",
    "Ltd": "Limited",
    "Corp": "Corporation",
    "Co": "Company",
    "Bros": "Brothers",
    "Ave": "Avenue",
    "Blvd": "Boulevard",
    "Rd": "Road",
    "Dept": "Department",
    "dept": "department",
    "est": "established",
    "Jan": "January",
    "Feb": "February",
    "Mar": "March",
    "Apr": "April",
    "Jun": "June",
    "Jul": "July",
    "Aug": "August",
    "Sept": "September",
    "Sep": "September",
    "Oct": "October",
    "Nov": "November",
    "Dec": "December",
    "Mon": "Monday",
    "Tue": "Tuesday",
    "Tues": "Tuesday",
    "Wed": "Wednesday",
    "Thu": "Thursday",
    "Thurs": "Thursday",
    "Fri": "Friday",
}
"""May end a sentence: a capital after the full stop says that they do."""

PHRASES = (
    (re.compile(r"\be\.g\.,?|\bE\.g\.,?"), "for example,"),
    (re.compile(r"\bi\.e\.,?|\bI\.e\.,?"), "that is,"),
    (re.compile(r"\bet al\."), "et al"),
    (re.compile(r"\bPh\.? ?D\b\.?"), "P H D"),
    (re.compile(r"\bNos?\. ?(?=\d)"), "number "),
    (re.compile(r"\bpp\. ?(?=\d)"), "pages "),
    (re.compile(r"\bp\. ?(?=\d)"), "page "),
    (re.compile(r"\bw/o\b"), "without"),
    (re.compile(r"\bw/ ?(?=[a-z])"), "with "),
    (re.compile(r"\b[vV](?=\d+\.)"), "version "),
)

SPELLED = frozenset(
    "AI AM API CD CEO CIA DJ DNA DVD EU FAQ FBI FM GB HD HR HTML ID IP IT LA LED MA ML MC MP NY OK PC PE PHD PM PR QA "
    "RNA SUV TV UK UN UPS URL US USB UV VIP VR XML".split()
)
"""Capitals that are read letter by letter although a word of that spelling exists."""

TOP_LEVEL = "com org net edu gov mil int info app dev io ai uk de fr eu ca us co me tv"
_TITLE = re.compile(rf"\b({'|'.join(TITLES)})\.(?=\s|-)|\b(vs|Mr|Mrs|Ms)\b(?!\.)")
_ENDING = re.compile(rf"\b({'|'.join(ENDINGS)})\.(\s+[A-Z]|\s*$)?")
_SAINT = re.compile(r"\b(St|Dr)\.(?=(\s+[A-Z])?)")
_DOTTED = re.compile(r"\b((?:[A-Za-z]\.){2,})(?=(\s+[A-Z]|\s*$)?)")
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_ADDRESS = re.compile(
    rf"\b(?:https?://|www\.)[^\s<>\"]*[\w/]|\b(?:[\w-]+\.)+(?:{TOP_LEVEL.replace(' ', '|')})\b(?:/[\w./~?=&%#-]*\w)?",
)
_ADDRESS_MARKS = {".": " dot ", "/": " slash ", "-": " dash ", "_": " underscore ", "@": " at ", ":": " colon "} | {
    "?": " question mark ",
    "=": " equals ",
    "&": " and ",
    "#": " hash ",
    "%": " percent ",
    "+": " plus ",
    "~": " tilde ",
}


def expand_abbreviations(text: str) -> str:
    """Titles, Latin and commercial abbreviations as words. Dotted initialisms are left to :func:`spell_initialisms`."""
    for pattern, words in PHRASES:
        text = pattern.sub(words, text)
    text = _SAINT.sub(lambda match: saint_or_street(match, text), text)
    text = _TITLE.sub(lambda match: TITLES[match[1] or match[2]], text)
    return _ENDING.sub(lambda match: ENDINGS[match[1]] + (f".{match[2]}" if match[2] is not None else ""), text)


def saint_or_street(match: re.Match[str], text: str) -> str:
    """ "St. Paul", "Dr. Li", but "Main St." and "Lake Dr."."""
    before = text[: match.start()].rstrip(" ").rpartition(" ")[2]
    after_name = bool(re.fullmatch(r"[A-Z][a-z]+|\d+(?:st|nd|rd|th)", before))
    if match[2] and not after_name:
        return {"St": "Saint", "Dr": "Doctor"}[match[1]]
    if not after_name:
        return {"St": "Street", "Dr": "Doctor"}[match[1]]
    return {"St": "Street", "Dr": "Drive"}[match[1]] + ("." if match[2] or not text[match.end() :].strip() else "")


def spell_addresses(text: str) -> str:
    """Web and mail addresses as they are read over the telephone; the scheme is left out."""
    text = _EMAIL.sub(lambda match: _spoken_address(match[0]), text)
    return _ADDRESS.sub(lambda match: _spoken_address(re.sub(r"^https?://", "", match[0])), text)


def _spoken_address(address: str) -> str:
    for mark, words in _ADDRESS_MARKS.items():
        address = address.replace(mark, words)
    return " ".join(
        word.upper() if word in ("www", "io", "ai", "uk", "us", "tv", "eu", "ca") else word for word in address.split()
    )


def spell_initialisms(text: str, lexicon: Lexicon) -> str:
    """ "U.S.", "TTS" and "GPUs" letter by letter; capitals that are a word (NASA, or anything shouted) as that word;
    "OpenAI" in its parts."""
    text = _DOTTED.sub(_spell_dotted, text)
    text = "".join(_spell_sentence(sentence, lexicon) for sentence in re.split(r"(?<=[.!?])(?=\s)", text))
    return re.sub(r"(^\s*|[.!?:;,]\s+)A (?=[a-z])", r"\1a ", text)


def _spell_sentence(sentence: str, lexicon: Lexicon) -> str:
    shouted = _is_shouted(sentence)

    def spell(match: re.Match[str]) -> str:
        word = match[0]
        if word.lower() in lexicon and (shouted or word not in SPELLED):
            return word if len(word) == 1 and not shouted else word.lower()
        parts = re.findall(r"[A-Z]+s\b|[A-Z]+(?![a-z])|[A-Z]?[a-z]+", word)
        return " ".join(_spell_part(part, lexicon, shouted) for part in parts)

    return re.sub(r"[A-Za-z]*[A-Z][A-Za-z]*", spell, sentence)


def _spell_dotted(match: re.Match[str]) -> str:
    letters = " ".join(match[1].replace(".", "").upper())
    return letters + ("." if match[2] is not None else "")


def _is_shouted(text: str) -> bool:
    words = re.findall("[A-Za-z]{2,}", text)
    capitals = [word for word in words if word.isupper()]
    return len(words) >= 3 and len(capitals) > 0.6 * len(words)


def _spell_part(part: str, lexicon: Lexicon, shouted: bool) -> str:
    if re.fullmatch("[A-Z]{2,}s", part):
        return f"{' '.join(part[:-2])} {part[-2]}'s"
    lower = part.lower()
    if len(part) == 1:
        return part.upper()
    if not part.isupper() or (lower in lexicon and (shouted or part not in SPELLED)):
        return lower
    pronounceable = re.search("[AEIOUY]", part) and len(part) > (3 if shouted else 4)
    return lower if pronounceable else " ".join(part)
