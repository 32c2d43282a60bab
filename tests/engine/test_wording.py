"""Figures and lists as people read them."""

from __future__ import annotations

import pytest

from paretone.wording import listed


@pytest.mark.parametrize(("names", "said"), [("", "none"), ("a", "a"), ("ab", "a or b"), ("abc", "a, b or c")])
def test_the_last_of_a_list_stands_after_a_word(names: str, said: str) -> None:
    assert listed(names, "or") == said
    assert listed(iter(names)) == said.replace(" or ", " and ")
