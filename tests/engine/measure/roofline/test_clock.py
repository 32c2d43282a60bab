"""Stages are timed part by part."""

import time
from statistics import median

import pytest
import torch
import torch.nn.functional as F

from paretone.errors import Cancelled
from paretone.measure.roofline import clock as clock_module
from paretone.measure.roofline.clock import Clock, TimedComponent, TimedPhase
from paretone.measure.roofline.counts import Work
from paretone.measure.roofline.report import FEED_FORWARD, HEAD, PROJECTIONS, REST, SAVED_TOGETHER, WITHIN_NOISE
from tests.engine.measure.roofline.known import ceilings
from tests.engine.recorder import Follower

CPU = torch.device("cpu")


def busy(rows: int):
    weight, x = torch.randn(256, 256), torch.randn(rows, 256)
    return lambda: F.linear(x, weight)


def test_a_stage_is_measured_part_by_part():
    small, large = busy(64), busy(640)
    layer = [(PROJECTIONS, small), (FEED_FORWARD, large)]
    parts = TimedComponent(PROJECTIONS, Work(1, 1), 3), TimedComponent(FEED_FORWARD, None, 3, share=0.5, note="half")

    def whole() -> None:
        for _, run in layer * 3:
            run()

    ticks = []
    clock = Clock(CPU, lambda: ticks.append(1), rounds=3)
    stage = TimedPhase("evaluation", "Evaluations", 4, parts, tuple(layer * 3), whole, layers=(small, large))
    phase = clock.measure(stage)
    first, second = phase.components
    assert (first.calls, second.calls) == (12, 6)
    assert first.work == Work(1, 1)
    assert second.work.operations == 2 * 640 * 256 * 256 and second.note == "half"
    assert (first.launches, phase.launches, phase.layer_launches) == (1, 6, (1, 1))
    assert second.seconds > 0 and first.seconds > 0
    assert phase.rest.name == REST and len(ticks) == clock.blocks([stage])
    assert phase.seconds == pytest.approx(4 * phase.whole_seconds)
    assert sum(one.total_seconds for one in phase.rows()) == pytest.approx(phase.seconds)


@pytest.mark.parametrize(
    ("beyond", "said"),
    [
        ((0.05, -0.06, 0.04, -0.01, 0.02), WITHIN_NOISE),
        ((0.05, 0.06, 0.04, 0.01, 0.02), ""),
        ((-0.05, -0.06, -0.04, -0.01, -0.02), SAVED_TOGETHER),
    ],
)
def test_the_rest_is_told_from_noise_within_rounds(monkeypatch, beyond, said):
    """On a clock of our own, under other programs that make rounds up to ten times as slow as others."""
    slow = (1, 10, 1, 4, 2)
    now, rounds = 0.0, []
    turns: list[str] = []

    def factor(name: str) -> float:
        """Slowness of this round; pieces and whole each run first in some rounds."""
        turns.append(name)
        return slow[max(0, turns.count(name) - 3)]  # Each is run twice to see how long it takes.

    def spend(seconds: float) -> None:
        nonlocal now
        now += seconds

    def first() -> None:
        rounds.append(factor("p"))
        spend(0.005 * rounds[-1])

    def whole() -> None:
        once = factor("w")
        spend(0.02 * once * (1 + beyond[max(0, turns.count("w") - 3)]))

    monkeypatch.setattr(time, "process_time", lambda: now)
    monkeypatch.setattr(clock_module, "launches", lambda run, device: 2)
    monkeypatch.setattr(clock_module, "counted", lambda run: (1, Work(1, 1)))
    pieces = (PROJECTIONS, first), (FEED_FORWARD, lambda: spend(0.015 * rounds[-1]))
    parts = TimedComponent(PROJECTIONS), TimedComponent(FEED_FORWARD)
    phase = Clock(CPU, rounds=5).measure(TimedPhase("evaluation", "Evaluations", 4, parts, pieces, whole))
    assert "".join(turns) == "ppww" + "pwwpwppwpw", "taking turns in going first"
    wholes = [0.02 * one * (1 + more) for one, more in zip(slow, beyond, strict=True)]
    assert phase.whole_seconds == pytest.approx(median(wholes))
    share = median(1 / (1 + more) for more in beyond)
    taken = [one.seconds for one in phase.components]
    assert taken == pytest.approx([share * phase.whole_seconds * one for one in (0.25, 0.75)])
    left = [1 - 1 / (1 + more) for more in beyond]
    assert phase.rest_range == pytest.approx((min(left) * phase.whole_seconds, max(left) * phase.whole_seconds))
    assert phase.rest.seconds == pytest.approx((1 - share) * phase.whole_seconds)
    assert phase.bound(phase.rest, ceilings()) == said and phase.rest_is_noise == (said == WITHIN_NOISE)
    low, high = (4000 * one for one in phase.rest_range)
    assert f"between {low:.3g} and {high:.3g} ms" in phase.rest.note


def test_few_rounds_say_nothing_of_noise():
    run = busy(64)
    stage = TimedPhase("evaluation", "Evaluations", 1, (TimedComponent(HEAD),), ((HEAD, run),), run)
    phase = Clock(CPU, rounds=2).measure(stage)
    assert phase.rest_range is None and not phase.rest_is_noise and phase.rest.note == ""


def test_measuring_can_be_cancelled():
    clock = Clock(CPU, Follower(cancel_at=1).check, rounds=1)
    with pytest.raises(Cancelled):
        clock.measure(TimedPhase("a", "A", 1, (TimedComponent(HEAD),), ((HEAD, busy(8)),)))
