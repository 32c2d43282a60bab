"""Transfer of a strategy table against plain runs, its verdicts, and how it is cancelled."""

import pytest

from paretone.errors import Cancelled, ProfileError
from paretone.measure.fidelity import log_mel_distance
from paretone.models.base import Utterance, Voice
from paretone.observer import Work
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques.ditreducio.calibration import calibrate
from paretone.techniques.ditreducio.preparation import calibrate_model, measure_transfer, transfer
from paretone.techniques.ditreducio.record import Sentence, SentenceTransfer, TransferReport
from paretone.techniques.ditreducio.skipping_bench import sample
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine import small_speech
from tests.engine.models.f5.plain_dit import small_dit
from tests.engine.techniques.ditreducio.observing import Recorder
from tests.engine.techniques.ditreducio.test_calibration import STEPS, calibration_target, knobs
from tests.workload import crossed


def measured(one: object, table: StrategyTable, chosen: Values) -> SentenceTransfer:
    return transfer(one, Sentence("", ""), table, chosen, Work(Recorder(), 10**6))


@pytest.mark.parametrize(
    ("branch_skip", "guidance", "temporal"), crossed(["both", "attention"], [2.0, 0.0], ["forecast", "reuse"])
)
def test_distance_is_that_of_two_runs(branch_skip: str, guidance: float, temporal: str) -> None:
    one = calibration_target(small_dit(depth=4), guidance)
    chosen = knobs(threshold=0.3, branch_skip=branch_skip, temporal=temporal)
    table = calibrate([calibration_target(small_dit(depth=4), guidance, seed=1)], chosen, Recorder()).table
    assert table.temporal == temporal and table.count(SkipAction.TS) and (table.count(SkipAction.BS) or not guidance)
    mels = [sample(one, which)[0, one.prompt_frames :].numpy() for which in (None, table)]
    found = measured(one, table, chosen)
    assert found.distance == pytest.approx(log_mel_distance(*mels), rel=1e-5)
    assert len(found.velocity_errors) == STEPS and found.velocity_errors[0] == 0 < max(found.velocity_errors)


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
    assert 0 < expected < 1 and measured(one, table, below).exceeding == pytest.approx(expected)


def test_a_table_without_skips_changes_nothing() -> None:
    one = calibration_target(small_dit(depth=4))
    found = measured(one, StrategyTable.computing(one.compatibility, 4), knobs())
    assert (found.distance, found.exceeding, found.velocity_error) == (0, 0, 0)


# --- With a model -----------------------------------------------------------------------------------------------------
def test_report_says_what_was_spoken_by_whom() -> None:
    model = small_speech.load()
    setting = small_speech.setting(4).with_technique(UsedTechnique("ditreducio", Values(threshold=0.5)))
    other = Voice("other", "Other", "other.wav", "A short prompt.")
    calibrated = [Utterance("One sentence.", small_speech.VOICE)]
    unseen = [Utterance("Another one. Not this.", small_speech.VOICE), Utterance("A third.", other)]
    table, recorder = calibrate_model(model, calibrated, setting, Recorder()).table, Recorder()
    report = measure_transfer(model, table, calibrated, unseen, setting, recorder)
    assert report.table == table.fingerprint and (report.threshold, report.metric) == (0.5, "mae")
    assert [(one.sentence.text, one.sentence.voice) for one in (*report.calibrated, *report.unseen)] == [
        ("One sentence", "noise"),
        ("Another one", "noise"),
        ("A third", "other"),
    ]
    assert all(one.sentence.frames == 12 and one.sentence.prompt_frames == 10 for one in report.unseen)
    assert len(recorder.statuses) == 3 and recorder.progressed[-1][0] == recorder.progressed[-1][1]
    stopped = Recorder(recorder.checks // 2)
    with pytest.raises(Cancelled):
        measure_transfer(model, table, calibrated, unseen, setting, stopped)
    assert stopped.checks == recorder.checks // 2, "within one trial"
    other = small_speech.setting(5).with_technique(UsedTechnique("ditreducio"))
    with pytest.raises(ProfileError, match="cannot be measured here: it belongs to number of steps 4"):
        measure_transfer(model, table, calibrated, unseen, other, Recorder())


def row(voice: str, distance: float, exceeding: float, frames: int = 100) -> SentenceTransfer:
    return SentenceTransfer(Sentence("Words.", voice, frames), (0.0, distance), distance, exceeding)


def report(*unseen: SentenceTransfer, calibrated: tuple = (row("a", 0.2, 0.1),)) -> TransferReport:
    return TransferReport("0", 0.1, "mae", calibrated, unseen)


@pytest.mark.parametrize(
    ("found", "well", "words"),
    [
        (report(row("a", 0.21, 0.1), row("b", 0.24, 0.15)), True, "transfers well"),
        (report(*[row("a", one, 0.1) for one in (0.1, 0.24, 0.3, 0.24)]), False, "undecided by the log-mel distance"),
        (report(row("a", 0.2, 0.1)), False, "undecided"),
        (report(*[row("a", 0.2, 0.78)] * 3, calibrated=(row("a", 0.2, 0.75),)), False, "most skips are beyond"),
        (report(row("b", 0.9, 0.9), calibrated=()), False, "measure the sentences that the table was calibrated on"),
    ],
)
def test_another_calibration_is_not_advised_where_nothing_proves_it(found: TransferReport, well: bool, words: str):
    assert not found.advised and found.well is well and words in found.verdict


@pytest.mark.parametrize(
    ("worse", "group"), [(row("b", 0.2, 0.3), "voice b"), (row("a", 0.9, 0.1, frames=200), "longer sentences")]
)
def test_who_is_served_worse_is_named(worse: SentenceTransfer, group: str) -> None:
    found = report(row("a", 0.2, 0.1), row("a", 0.2, 0.1), row("a", 0.2, 0.1), worse)
    assert found.ill_served == (group,) and group in found.verdict
    assert "several sentences" in found.verdict and found.to_json()["advised"] is True
