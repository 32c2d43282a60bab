"""Figures and lists as people read them."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from paretone.wording import comma_separated, comments, listed, significant


@pytest.mark.parametrize(("names", "said"), [("", "none"), ("a", "a"), ("ab", "a or b"), ("abc", "a, b or c")])
def test_the_last_of_a_list_stands_after_a_word(names: str, said: str) -> None:
    assert listed(names, "or") == said
    assert listed(iter(names)) == said.replace(" or ", " and ")


def test_measured_figures_have_three_significant_digits() -> None:
    figures = 0.0, 0.05, 0.8119, 1.0, -2.9419, 23.45, 999.4, 999.6, 12345.6
    assert [*map(significant, figures)] == "0 0.0500 0.812 1.00 -2.94 23.4 999 1,000 12,346".split()


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_texts_that_a_spreadsheet_would_compute_get_an_apostrophe(begins: str) -> None:
    text = f'{begins}HYPERLINK("http://example.org","title")'
    assert next(csv.reader(io.StringIO(comma_separated([[text, "a"]]), newline=""))) == [f"'{text}", "a"]


@pytest.mark.parametrize("value", [-0.5, "-0.5", "+3", "-1e-05", "-.5", "-12 %", "-3.5%", 0, None, "", "a=b", "1-2"])
def test_numbers_and_other_texts_stay(value: object) -> None:
    (found,) = next(csv.reader(io.StringIO(comma_separated([[value]]))), [""])
    assert found == ("" if value is None else str(value))


def test_lines_before_a_table_are_cut_into_no_formula() -> None:
    lines = comments({"text": "Rice,=cmd();+1\t@x", "voice": "a\nb"})
    assert lines == "# text: Rice, =cmd(); +1 @x\n# voice: a b\n"
    for delimiter in ",;\t":
        cells = [cell for line in lines.splitlines() for cell in line.split(delimiter)]
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)


def test_nobody_else_writes_such_tables() -> None:
    """So that none forgets."""
    files = [path for folder in ("app", "engine") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 500
    found = [path for path in files if re.search(r"csv\.(writer|DictWriter)\(", path.read_text(encoding="utf-8"))]
    assert found == [ROOT / "engine" / "paretone" / "wording.py"]
