"""What the window promises is held by tests that are there."""

import re
from pathlib import Path

from paretone.paths import resource

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"`((?:[\w]+/)*test_\w+\.py)(?:::(test_\w+))?`")


def test_every_test_that_the_guide_names_exists() -> None:
    page = resource("docs", "window-promises.md").read_text(encoding="utf-8")
    assert "window-promises.md" in resource("docs", "window.md").read_text(encoding="utf-8"), "the guide leads to it"
    rows = [one for one in page.splitlines() if one.startswith("|") and "---" not in one and "| tests |" not in one]
    assert len(rows) > 40
    for row in rows:
        named = NAMED.findall(row)
        assert named, f"no test holds: {row}"
        for file, test in named:
            path = TESTS / file if file.startswith("end_to_end/") else TESTS / "app" / file
            assert path.is_file(), path
            assert not test or f"def {test}(" in path.read_text(encoding="utf-8"), f"{file} has no {test}"
