"""What passes and what does not, on logs whose figures are known."""

from dataclasses import replace
from pathlib import Path

import pytest

from paretone.errors import PlainError
from tests.tools.endurance.verdict import (
    LEAST,
    SETTLED,
    WARM_UP,
    Reading,
    RoundLine,
    curve,
    encoded,
    grown,
    judge,
    read,
    read_log,
    why_not_read,
)

LEVEL = Reading(800.0, 500.0, 10, 20, 5000, 900, 30, 400_000, 3)


def lines(count: int = WARM_UP + 9, **changes: object) -> list[RoundLine]:
    """Rounds of a level run; ``changes`` are functions of the round's number."""
    return [
        RoundLine(one, 60.0 * one, replace(LEVEL, **{name: change(one) for name, change in changes.items()}), 8, 12, 40)
        for one in range(count + 1)
    ]


def test_a_level_run_passes_and_says_how_level() -> None:
    found = judge(lines(memory=lambda one: 800.0 + one % 2))
    assert found.passed
    assert "+0.0%" in found.sentences[0] or "0.1%" in found.sentences[0]


def test_what_grows_during_the_warm_up_is_not_judged() -> None:
    assert judge(lines(memory=lambda one: 500.0 if one <= WARM_UP else 800.0, threads=lambda one: min(one, 3))).passed


def test_memory_that_grows_by_more_than_the_limit_does_not_pass() -> None:
    assert judge(lines(memory=lambda one: 800.0 + 5 * one)).passed, "of few rounds little is known"
    many = WARM_UP + SETTLED
    assert judge(lines(many, memory=lambda one: 800.0 + one / 3)).passed
    assert judge(lines(many, memory=lambda one: 800.0 + one / 2)).passed is False
    found = judge(lines(memory=lambda one: 800.0 + 10 * one))
    assert found.passed is False
    assert any(one.startswith("Memory:") and "+7" in one for one in found.sentences)


@pytest.mark.parametrize("name", ["threads", "files", "qt_objects", "widgets", "windows", "temporary_files"])
def test_one_more_each_few_rounds_is_a_leak(name: str) -> None:
    assert judge(lines(**{name: lambda one: 10 + one // 3})).passed is False
    assert judge(lines(**{name: lambda one: 10 + one % 3})).passed, "coming and going is none"


def test_a_failed_action_does_not_pass_however_short_the_run() -> None:
    short = lines(count=1)
    assert judge(short).passed is None
    short[1] = replace(short[1], failures=("export: no room",))
    found = judge(short)
    assert found.passed is False and "Round 1: export: no room" in found.sentences


def test_few_rounds_say_nothing() -> None:
    assert judge(lines(count=WARM_UP + LEAST - 1)).passed is None
    assert judge(lines(count=WARM_UP + LEAST)).passed


def test_a_log_is_read_back_without_the_half_line_of_a_killed_run(tmp_path: Path) -> None:
    path, written = tmp_path / "log.jsonl", lines(count=3)
    path.write_text("".join(encoded(one) + "\n" for one in written) + encoded(written[0])[:40], encoding="utf-8")
    assert read_log(path) == written
    path.write_text(encoded(written[0])[:40] + "\n" + encoded(written[1]) + "\n", encoding="utf-8")
    with pytest.raises(PlainError, match=r"log\.jsonl, line 1 is no round"):
        read_log(path)


def test_the_curve_of_a_long_run_is_small_and_shows_the_limit() -> None:
    svg = curve(lines(count=300, memory=lambda one: 800.0 + one / 100))
    assert len(svg.encode()) < 60_000
    assert svg.count("<title>round 300: ") == 6, "the last round is on every plot"
    assert "<title>limit: 809" in svg


@pytest.mark.skipif(bool(why_not_read()), reason=why_not_read())
def test_a_reading_sees_what_is_held(qapp: object, tmp_path: Path) -> None:
    before = read()
    held = [(tmp_path / f"{one}").open("w") for one in range(5)]
    block, lists = bytearray(b"x") * 60_000_000, [[[]] for _ in range(1000)]
    now = read()
    assert now.files == before.files + 5
    assert now.memory > before.memory + 50 and now.anonymous > before.anonymous + 50
    assert now.objects >= before.objects + 2 * len(lists) and now.threads >= 1
    for one in held:
        one.close()
    del block
    assert read().files == before.files
    assert grown({"a": 1, "b": 5}, {"a": 4, "b": 5, "c": 1}) == {"a": 3, "c": 1}
