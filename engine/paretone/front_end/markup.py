"""Layout and markup of a text: HTML, Markdown, quoted mail and lists become plain lines; lines become sentences or are
joined where only the width of a page broke them."""

from __future__ import annotations

import html
import re

from paretone.front_end.numbers import roman
from paretone.front_end.written_forms import LATEX, listed

_BLOCKS = "p|div|li|ul|ol|h[1-6]|tr|table|br|hr|blockquote|section|article|pre|speak|title|header|footer|dd|dt"
_ATTRIBUTE = r"\s+[\w:.-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>=]+)"
_COMMENT = re.compile(r"<!--.*?-->|<!DOCTYPE[^>]*>|<\?xml.*?\?>|<!\[CDATA\[|\]\]>", re.DOTALL)
_UNREAD = re.compile(r"<(script|style)\b[^>]*>.*?</\1>", re.DOTALL | re.IGNORECASE)
_BLOCK = re.compile(rf"</?(?:{_BLOCKS})(?:{_ATTRIBUTE}|\s+[\w:.-]+)*\s*/?>", re.IGNORECASE)
ELEMENT = rf"</?(?P<name>[A-Za-z][\w:.-]*)(?:{_ATTRIBUTE})*\s*/?>"
_ELEMENT = re.compile(rf"<([A-Za-z][\w-]*)>|{ELEMENT}")
_EMPTY = frozenset(listed("unclosed tag"))
_RAISED = re.compile(r"<(?:sup|sub)>(?=\w)", re.IGNORECASE)
ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}|#\d{1,7}|#x[0-9A-Fa-f]{1,6});")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)?[^\s<>@]+(?:@|\.)[^\s<>]+)>")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()\s]+)(?:\s+\"[^\"]*\")?\)")
_FOOTNOTE = re.compile(r"\[\^\w{1,9}\]:?|(?<=[.,;:!?\"”])(?:\[\d{1,3}(?:[,–-] ?\d{1,3})*\])+")
_STRONG = re.compile(r"(\*{1,3}|~~|==|`+)(?=\S)([^\n]{1,400}?)(?<=\S)\1(?!\w)")
_PRODUCT = re.compile(r"[\d\W]+")  # "2 * 3 * 4", which marks nothing.
_LOW = re.compile(r"(?<![\w/])(_{1,3})(?=\S)([^\n_]{1,400}?)(?<=\S)\1(?!\w)")
_QUOTED = re.compile(r"^(?:[ \t]*>)+[ \t]?(?!=|\d)|^(?:[ \t]*>)+[ \t]+", re.MULTILINE)
_FORMULA = re.compile(
    r"\$\$?(?=[^$\n]*[\\^_]|[A-Za-z(][^$\n]*[=<>])([^\s$](?:[^$\n]{0,300}[^\s$])?)\$\$?(?!\d)|"
    r"\\[(\[](.{1,300}?)\\[)\]]|^(?!.*(?:\$|\\[(\[]))(?=.*\\(?:frac|sqrt)\{)(.+)$",
    re.MULTILINE,
)
_UNSEEN = re.compile(r"\x1b\[[\d;]*[A-Za-z]|(?<=[ \t]{8})[ \t]+")
"""Colors of a terminal, and blanks after as many as any indentation has."""
_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_RULE = re.compile(r"^[ \t]*(?:[-*_=][ \t]*){2,}$|^[ \t]*\|?(?:[ \t]*:?-{2,}:?[ \t]*\|?)+[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+(?:(\d+)\.(?=[ \t]))?(.*?)[ \t]*#*$", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•·‣▪◦–][ \t]+)(?:\[[ xX]?\][ \t]*)?", re.MULTILINE)
_NUMBERED = re.compile(r"^([ \t]*)(\d{1,3}|[a-zA-Z]|[ivx]{2,5}|[IVX]{2,5})[.)][ \t]+(?=\S)", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*\|(.+)\|[ \t]*$", re.MULTILINE)
WIDTH = 40
"""Characters of a line from which its end may be the page's."""
END = "\x02"
"""Stands where a line ends that is a sentence."""


def plain_lines(text: str) -> str:
    """``text`` without markup, in one line: each sentence that a line or a paragraph ends is followed by
    :data:`END`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace(END, " ")
    text = _FORMULA.sub(lambda one: f" {_formula(one[1] or one[2] or one[3])} ", _UNSEEN.sub("", text))
    if "<" in text:
        text = _UNREAD.sub(" ", _COMMENT.sub(" ", text))
        text = _RAISED.sub(" ", _AUTOLINK.sub(r" \1 ", text))
        tags = _EMPTY.union(re.findall(r"</([\w:-]+)", text.lower()))  # Other names are words: "press <Enter>".
        text = _BLOCK.sub("\n\n", text)
        text = _ELEMENT.sub(lambda one: f" {one[1]} " if one[1] and one[1].lower() not in tags else "", text)
    if "&" in text:
        text = ENTITY.sub(lambda match: html.unescape(match[0]), text)
    text = _QUOTED.sub("", text)
    text = _RULE.sub("\n", _FENCE.sub("\n", text))
    text = _HEADING.sub(r"\n\1\2\n\n", text)
    text = _ROW.sub(lambda match: ", ".join(cell.strip() for cell in match[1].split("|") if cell.strip()) + "\n", text)
    text = _FOOTNOTE.sub("", _LINK.sub(r"\1", text))
    for _ in range(2):
        text = _STRONG.sub(lambda one: one[0 if one[1] == "*" and _PRODUCT.fullmatch(one[2]) else 2], text)
        text = _LOW.sub(r"\2", text)
    text = _BULLET.sub("\n" if "\n" in text.strip() else "", text)
    several = len(_NUMBERED.findall(text)) > 1 or (_NUMBERED.match(text) and "\n" in text)
    romans = re.search(r"^[ \t]*(?:ii|II)[.)]", text, re.MULTILINE) is not None
    label = (lambda said: str(roman(said.upper()) or said)) if romans else str.upper
    text = _NUMBERED.sub(lambda match: f"\n{label(match[2])}, ", text) if several else text
    return _lines(text)


def _formula(text: str) -> str:
    r"""LaTeX in plain signs: "\frac{a}{2} \le 1" is "a over 2 ≤ 1"."""
    for _ in range(3):  # One within another.
        text = re.sub(r"\\[dt]?frac ?\{([^{}]*)\} ?\{([^{}]*)\}", r"\1 over \2 ", text)
        text = re.sub(r"\\sqrt ?\{([^{}]*)\}", r"√(\1)", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda one: LATEX.get(one[1], one[1]), text).replace("^°", "°")
    return re.sub(r"(?<![_^])\{(\w+)\}|\\[,;! ]", r"\1", text)


def _lines(text: str) -> str:
    said = []
    for paragraph in re.split(r"\n[ \t]*\n\s*", text):
        lines = [line.strip() for line in paragraph.split("\n") if line.strip()]
        width = max(map(len, lines), default=0)
        for line, after in zip(lines, [*lines[1:], ""], strict=False):
            joined = after and (
                (width >= WIDTH and len(line) + 1 + len(after.split()[0]) > width and line[-1] not in ":.!?")
                or (re.search(r"[,;—-]$", line) and after[0].islower())
            )
            said += [line, " " if joined else END]
    return "".join(said)
