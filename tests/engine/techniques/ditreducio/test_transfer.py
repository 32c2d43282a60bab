"""Transfer of a strategy table against plain runs, its verdicts, and how it is cancelled."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from paretone.errors import Cancelled, ProfileError
from paretone.measure.fidelity import log_mel_distance
from paretone.models.base import Utterance, Voice
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import Values, defaults
from paretone.setting.setting import UsedTechnique
from paretone.techniques.ditreducio import TECHNIQUE
from paretone.techniques.ditreducio.calibration import calibrate
from paretone.techniques.ditreducio.preparation import calibrate_model, measure_transfer, transfer
from paretone.techniques.ditreducio.record import Sentence, SentenceTransfer, TransferReport
from paretone.techniques.ditreducio.skipping_bench import sample
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.ditreducio.trajectory import Work, mean_absolute_error
from tests.engine import small_speech
from tests.engine.models.f5.plain_dit import small_dit
from tests.engine.techniques.ditreducio.observing import Recorder
from tests.engine.techniques.ditreducio.test_calibration import STEPS, calibration_target, knobs


def measured(one: object, table: StrategyTable, chosen: Values) -> SentenceTransfer:
    return transfer(one, Sentence("", ""), table, chosen, Work(Recorder(), 10**6))


@pytest.mark.parametrize("branch_skip", ["both", "attention"])
@pytest.mark.parametrize("guidance", [2.0, 0.0])
@pytest.mark.parametrize("temporal", ["reuse", "forecast"])
def test_distance_is_that_of_two_runs(branch_skip: str, guidance: float, temporal: str) -> None:
    one = calibration_target(small_dit(depth=4), guidance)
    chosen = knobs(threshold=0.3, branch_skip=branch_skip, temporal=temporal)
    table = calibrate([calibration_target(small_dit(depth=4), guidance, seed=1)], chosen, Recorder()).table
    assert table.temporal == temporal
    assert table.count(SkipAction.TS) and (table.count(SkipAction.BS) or not guidance)
    mels = [sample(one, which)[0, one.prompt_frames :].numpy() for which in (None, table)]
    found = measured(one, table, chosen)
    assert found.distance == pytest.approx(log_mel_distance(*mels), rel=1e-5)
    assert len(found.velocity_errors) == STEPS
    assert found.velocity_errors[0] == 0 < max(found.velocity_errors)


def test_first_skipped_step_counts_as_a_calibration_counts() -> None:
    """Up to the first step with skips both measure the same: all errors there, against the same bounds."""
    one, chosen = calibration_target(small_dit(depth=4)), knobs(threshold=0.3, marked=0.0)
    record = calibrate([one], chosen, Recorder())
    first = next(step for step in range(STEPS) if any(record.table.at(step)))
    rows = tuple(
        tuple(action if step == first else SkipAction.NONE for step, action in enumerate(row))
        for row in record.table.actions
    )
    table = StrategyTable(record.table.compatibility, rows)
    assert measured(one, table, chosen).exceeding == 0
    errors = [trial.error * 4 / (trial.layer + 1) for trial in record.trials if trial.step == first and trial.accepted]
    below = chosen.replace(threshold=sorted(errors)[len(errors) // 2])
    expected = sum(error >= below["threshold"] for error in errors) / len(errors)
    assert 0 < expected < 1
    assert measured(one, table, below).exceeding == pytest.approx(expected)


def test_a_table_without_skips_changes_nothing() -> None:
    one = calibration_target(small_dit(depth=4))
    found = measured(one, StrategyTable.computing(one.compatibility, 4), knobs())
    assert (found.distance, found.exceeding, found.velocity_error) == (0, 0, 0)


def test_velocities_are_compared_along_both_trajectories() -> None:
    one, chosen = calibration_target(small_dit(depth=4)), knobs(threshold=0.5, marked=0.0)
    table = calibrate([one], chosen, Recorder()).table
    followed: list[torch.Tensor] = []

    def noting(state: torch.Tensor, velocity: torch.Tensor, step: int) -> torch.Tensor:
        followed.append(velocity)
        return one.follow(state, velocity, step)

    found = measured(replace(one, follow=noting), table, chosen)
    expected = [mean_absolute_error(*pair) for pair in zip(followed[::2], followed[1::2], strict=True)]
    assert found.velocity_errors == pytest.approx(expected)
    alone = [one.noise]
    for step in range(STEPS):
        alone.append(one.follow(alone[-1], followed[2 * step], step))
    assert torch.allclose(alone[-1], sample(one, None), atol=1e-5), "the full run follows its own velocities only"


# --- With a model -----------------------------------------------------------------------------------------------------
def job(steps: int = 4) -> tuple:
    model = small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None)
    setting = small_speech.setting(steps).with_technique(UsedTechnique("ditreducio", Values(threshold=0.5)))
    other = Voice("other", "Other", "other.wav", "A short prompt.")
    calibrated = [Utterance("One sentence.", small_speech.VOICE)]
    unseen = [Utterance("Another one. Not this.", small_speech.VOICE), Utterance("A third.", other)]
    table = calibrate_model(model, calibrated, setting, Recorder()).table
    return model, table, calibrated, unseen, setting


def test_report_says_what_was_spoken_by_whom() -> None:
    model, table, calibrated, unseen, setting = job()
    recorder = Recorder()
    report = measure_transfer(model, table, calibrated, unseen, setting, recorder)
    assert report.table == table.fingerprint
    assert (report.threshold, report.metric) == (0.5, "mae")
    assert [(one.sentence.text, one.sentence.voice) for one in (*report.calibrated, *report.unseen)] == [
        ("One sentence", "noise"),
        ("Another one", "noise"),
        ("A third", "other"),
    ]
    assert all(one.sentence.frames == 12 and one.sentence.prompt_frames == 10 for one in report.unseen)
    assert len(recorder.statuses) == 3
    assert recorder.progressed[-1][0] == recorder.progressed[-1][1]


def test_cancel_takes_effect_within_one_trial() -> None:
    model, table, calibrated, unseen, setting = job()
    whole = Recorder()
    measure_transfer(model, table, calibrated, unseen, setting, whole)
    for cancel_after in range(1, whole.checks, 5):
        recorder = Recorder(cancel_after)
        with pytest.raises(Cancelled):
            measure_transfer(model, table, calibrated, unseen, setting, recorder)
        assert recorder.checks == cancel_after


def test_a_table_of_another_grid_is_refused() -> None:
    model, table, calibrated, unseen, _ = job()
    other = small_speech.setting(5).with_technique(UsedTechnique("ditreducio"))
    with pytest.raises(ProfileError, match="cannot be measured here: it belongs to number of steps 4"):
        measure_transfer(model, table, calibrated, unseen, other, Recorder())
    # The transfer of a table without used knobs is measured at the declared defaults.
    found = measure_transfer(model, table, calibrated, unseen, small_speech.setting(4), Recorder())
    assert found.threshold == defaults(TECHNIQUE.knobs)["threshold"]


# --- Verdicts ---------------------------------------------------------------------------------------------------------
def row(voice: str, distance: float, exceeding: float, frames: int = 100) -> SentenceTransfer:
    return SentenceTransfer(Sentence("Words.", voice, frames), (0.0, distance), distance, exceeding)


def report(
    *unseen: SentenceTransfer, calibrated: tuple[SentenceTransfer, ...] = (row("a", 0.2, 0.1),)
) -> TransferReport:
    return TransferReport("0", 0.1, "mae", calibrated, unseen)


def test_equal_figures_need_no_other_calibration() -> None:
    found = report(row("a", 0.21, 0.1), row("b", 0.24, 0.15))
    assert not found.advised
    assert found.well and "transfers well" in found.verdict


def test_sentences_that_scatter_around_the_limit_leave_it_undecided() -> None:
    found = report(row("a", 0.1, 0.1), row("a", 0.24, 0.1), row("a", 0.3, 0.1), row("a", 0.24, 0.1))
    assert not found.advised and not found.well
    assert "undecided by the log-mel distance" in found.verdict and "more sentences would decide" in found.verdict


def test_one_sentence_proves_nothing() -> None:
    found = report(row("a", 0.2, 0.1))
    assert not found.well and "undecided" in found.verdict


def test_skips_beyond_their_bounds_are_not_praised_for_being_so_on_all_text() -> None:
    found = report(*[row("a", 0.2, 0.78)] * 3, calibrated=(row("a", 0.2, 0.75),))
    assert not found.advised and not found.well
    assert "transfers well" not in found.verdict and "most skips are beyond their bounds" in found.verdict


@pytest.mark.parametrize(
    ("worse", "group"),
    [
        (row("b", 0.3, 0.1), "voice b"),
        (row("b", 0.2, 0.3), "voice b"),
        (row("a", 0.9, 0.1, frames=200), "longer sentences"),
        (row("a", 0.9, 0.1, frames=40), "shorter sentences"),
    ],
)
def test_who_is_served_worse_is_named(worse: SentenceTransfer, group: str) -> None:
    found = report(row("a", 0.2, 0.1), row("a", 0.2, 0.1), row("a", 0.2, 0.1), worse)
    assert found.ill_served == (group,)
    assert group in found.verdict
    assert "several sentences" in found.verdict
    assert found.to_json()["advised"] is True


def test_without_the_tables_own_sentences_nothing_is_advised() -> None:
    found = report(row("b", 0.9, 0.9), calibrated=())
    assert not found.advised
    assert found.verdict.startswith("On 1 sentence: ")
    assert "measure the sentences that the table was calibrated on" in found.verdict
