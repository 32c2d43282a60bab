"""Running a study: everything is done once, whatever happens in between; who does what, and what waits for what."""

import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

import paretone
from paretone.errors import Cancelled, PlainError, StudyError
from paretone.measure.evaluation import judges
from paretone.measure.evaluation.judges import JudgeKind, Verdict
from paretone.measure.fidelity import log_mel_distance
from paretone.measure.metrics import metric
from paretone.models.base import Voice
from paretone.speaking import synthesise
from paretone.studies import definition
from paretone.studies.execution import TaskRunner
from paretone.studies.results import read
from paretone.studies.running import ATTEMPTS, FINISHED, PAUSED, LocalExecutor, Queue, alone_with, run
from paretone.studies.store import DATABASE, Store
from paretone.studies.study import MeasureReference, Prepare, Speak, Study, Task, seeded
from paretone.studies.wording import setting_title
from tests.engine.small_speech import save_cfg_free
from tests.engine.studies.small import Follower, finished, load, sql, study, takes_in
from tests.voices import SECOND
from tests.workload import workload

KILLS = int(os.environ.get("PARETONE_KILLS", workload(20, 2)))
"""Number of times that the process is killed halfway; resources/docs/studies.md runs 50."""


def audio(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "audio").iterdir())}


def test_every_cell_is_made_and_measured_against_its_baseline(tmp_path: Path) -> None:
    chosen, follower = study(seeds=[1, 2], rounds=2), Follower()
    assert finished(tmp_path / "s", chosen, follower) == FINISHED
    takes = {one.cell: one for one in takes_in(tmp_path / "s")}
    assert set(takes) == {cell for one in chosen.candidates for cell in chosen.cells(one)}
    assert len(takes) == len(follower.takes) == chosen.takes == 36
    assert follower.advances[-1] == (36, 36, 0.0)
    assert follower.begins[0].startswith("baseline, steps "), "several baselines are told apart"
    assert {one.partition(",")[0] for one in follower.begins} == {"baseline", "Step pruning 2", "Step pruning 3"}
    # As when it is made by itself.
    model = load("f5-mini", status=lambda text: None, check=lambda: None)
    candidate, spoken = chosen.candidates[1], chosen.utterances[2]
    mine = seeded(candidate, 2)
    alone = [synthesise(model, spoken.text, spoken.voice, setting) for setting in (mine, mine.baseline)]
    (cell,) = [one for one in chosen.cells(candidate) if (one.utterance, one.seed, one.round) == (spoken.key, 2, 0)]
    kept = takes[cell]
    assert np.array_equal(soundfile.read(tmp_path / "s" / "audio" / f"{kept.take}.wav")[0], alone[0].samples)
    assert kept.log_mel_distance == pytest.approx(log_mel_distance(alone[1].trace.mel, alone[0].trace.mel))
    assert kept.metrics.mel_cepstral_distortion > 0 and kept.metrics.silence is not None
    assert kept.measurements.ops_ratio == pytest.approx(0.5) and kept.measurements.peak_memory_bytes > 0
    assert kept.clock_seconds > 0
    assert "Read by the test." in kept.notes
    # A later round measures speed only: its sound is that of the first.
    assert len(audio(tmp_path / "s")) == 18


def test_takes_at_once_sound_as_alone_and_are_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together = study(seeds=[1, 2]), study(seeds=[1, 2], batch=4)
    assert finished(tmp_path / "alone", alone) == finished(tmp_path / "together", together) == FINISHED
    with Store(tmp_path / "alone") as one, Store(tmp_path / "together") as other:
        kept = {take.cell: one.audio(take.take) for take in one.takes()}
        found = {take.cell: (take, other.audio(take.take)) for take in other.takes()}
    assert found.keys() == kept.keys() and len(found) == 18
    assert all(np.abs(audio - kept[cell]).max() < 1e-3 for cell, (_, audio) in found.items())
    assert not any(take.clock_seconds or take.measurements.seconds for take, _ in found.values())
    results = read(tmp_path / "together")
    figures = results.settings[1].figures
    assert figures["ops_ratio"].value == pytest.approx(0.5) and figures["log_mel_distance"].value > 0
    assert not any(metric(name).is_timed for each in results.settings for name in each.figures) and not results.clocks
    cut = Follower()
    monkeypatch.setattr(TaskRunner, "hear", lambda *given: setattr(cut, "cancel_after", 0) or ())
    with pytest.raises(Cancelled):
        finished(tmp_path / "cut", together, cut)
    assert len(takes_in(tmp_path / "cut")) == 1 and finished(tmp_path / "cut", together) == FINISHED
    assert {one.cell for one in takes_in(tmp_path / "cut")} == set(found)


def test_nothing_that_needs_times_is_spoken_at_once() -> None:
    with pytest.raises(StudyError, match="rounds repeat takes to time them"):
        study(batch=4, rounds=2)
    with pytest.raises(StudyError, match="the search asks for RTF"):
        study(batch=4, search={"space": {"steps": [2, 4]}})


def test_a_strategy_table_is_calibrated_once_and_used(tmp_path: Path) -> None:
    chosen = study(grid={"ditreducio.threshold": [0.5, 1.5]})
    follower = Follower()
    assert finished(tmp_path / "s", chosen, follower) == FINISHED
    # The second threshold cuts what was measured for the first.
    assert follower.shares == sorted(follower.shares) and 0.5 < follower.shares[-1] <= 1
    with Store(tmp_path / "s") as store:
        tables = store.artefacts()
        ratios = {one.cell.setting: one.measurements.ops_ratio for one in store.takes()}
    assert set(tables) == {one.key for one in chosen.candidates[1:]}
    assert all(ratio < 1 for key, ratio in ratios.items() if key in tables)
    before = sql(tmp_path / "s", "SELECT * FROM tables")
    # More sentences need no more calibrations.
    more = study(grid={"ditreducio.threshold": [0.5, 1.5]}, sentences=["One sentence.", "A fourth."])
    finished(tmp_path / "s", more)
    assert sql(tmp_path / "s", "SELECT * FROM tables") == before
    assert sql(tmp_path / "s", "SELECT count(*) FROM takes") == [(12,)]


def test_cancelling_keeps_what_is_finished_and_nothing_is_redone(tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        finished(tmp_path / "s", follower=Follower(cancel_after=4))
    assert len(before := takes_in(tmp_path / "s")) == 4
    again, third = Follower(), Follower()
    assert finished(tmp_path / "s", follower=again) == FINISHED
    assert len(again.takes) == 5 and again.advances[0][:2] == (5, 9)
    assert set(before) < set(takes_in(tmp_path / "s"))
    assert finished(tmp_path / "s", follower=third) == FINISHED and third.takes == []


def test_a_begun_study_keeps_its_pronunciations_whatever_is_taught_since(tmp_path: Path) -> None:
    file, folder = tmp_path / "s.toml", tmp_path / "s.study"
    file.write_text('sentences = ["Nguyen came."]\n[options]\nsteps = 4\n[grid]\nsteps.steps = [2]\n', "utf-8")
    began = definition.read(file, folder)
    assert finished(folder, began) == FINISHED
    paretone.teach("Nguyen", "win")
    assert definition.read(file, folder).candidates == began.candidates
    assert definition.read(file).candidates[0].setting.options["pronunciations"] == "Nguyen = win"


def test_a_take_whose_audio_was_lost_or_cut_short_is_made_again(tmp_path: Path) -> None:
    chosen = study(rounds=2)
    finished(tmp_path / "s", chosen)
    before = audio(tmp_path / "s")
    gone, short, wrong = sorted(before)[::3]
    (tmp_path / "s" / "audio" / gone).unlink()
    (tmp_path / "s" / "audio" / short).write_bytes(before[short][:-1000])
    (tmp_path / "s" / "audio" / wrong).write_bytes(bytes(len(before[wrong])))
    found = read(tmp_path / "s")
    assert {f"{one}.wav" for one in found.lost} == {gone, short, wrong}
    assert sum(one.finished for one in found.settings) == 15
    assert sum(map(len, found.heard.values())) == sum(len(one.takes) for one in found.settings) == 6
    # Cancelled before it was made again, a take is what it was.
    with pytest.raises(Cancelled):
        finished(tmp_path / "s", chosen, Follower(cancel_after=0))
    assert len(takes_in(tmp_path / "s")) == 18
    again = Follower()
    assert finished(tmp_path / "s", chosen, again) == FINISHED
    assert {f"{one.take}.wav" for one in again.takes} == {gone, short, wrong}
    assert again.advances[-1][:2] == (18, 18)
    assert audio(tmp_path / "s") == before
    assert read(tmp_path / "s").lost == () and len(takes_in(tmp_path / "s")) == 18


def test_pausing_ends_after_the_take_under_way(tmp_path: Path) -> None:
    assert finished(tmp_path / "s", follower=Follower(pause_after=3)) == PAUSED and len(takes_in(tmp_path / "s")) == 3
    assert finished(tmp_path / "s") == FINISHED


def test_a_setting_that_cannot_be_run_is_left_out_and_says_why(tmp_path: Path) -> None:
    # The small model has no CFG-free weights.
    assert finished(tmp_path / "s", study(grid={"guidance_free.used": ["on"], "steps.steps": ["off", 2]})) == FINISHED
    found = read(tmp_path / "s")
    assert [one.finished for one in found.settings] == [3, 0, 0]
    assert "CFG-free weights" in found.settings[1].problem and found.settings[0].problem == ""


def test_settings_have_their_names_and_name_their_weights(tmp_path: Path) -> None:
    """The baseline's as well, and knobs that are left out are as the weights want them."""
    (tmp_path / "weights").touch()
    save_cfg_free(tmp_path / "half.safetensors", 0.5)
    named = ({"name": one, "techniques": {"guidance_free": {"weights": one}}} for one in ("half", "third"))
    chosen = study(grid=None, setting=[{"name": "as it is"}, *named], folder=str(tmp_path), sentences=["One."])
    assert finished(tmp_path / "s", chosen) == FINISHED
    found = read(tmp_path / "s").settings
    assert [setting_title(one) for one in found] == ["as it is", "half", "third"]
    assert [one.finished for one in found] == [1, 1, 0]
    assert "no weights named 'third' for CFG-free; there are half (" in found[2].problem


def test_takes_that_fail_are_told_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf:
        def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
            if text == "Another one.":
                raise PlainError("The judge sleeps.")
            return Verdict("words", {"edits": 1.0, "words": 2.0}, "one")

    def no_reference(*said: object) -> None:
        raise PlainError("Nobody spoke.")

    ear = JudgeKind("ear", "Ear", "deaf:load")
    monkeypatch.setitem(sys.modules, "deaf", SimpleNamespace(load=lambda texts, folder, device: Deaf()))
    monkeypatch.setattr(judges, "JUDGES", (*judges.JUDGES, ear))
    chosen = study(judges=["ear"], voices=[SECOND])
    monkeypatch.setattr("paretone.studies.execution.reference_speech", no_reference)
    assert finished(tmp_path / "s", chosen) == FINISHED
    found = read(tmp_path / "s")
    assert [one.finished for one in found.settings] == [2, 2, 2] and found.failures == ("The judge sleeps. (3 takes)",)
    assert {one.cell.setting for one in found.failed} == {one.key for one in found.settings}
    assert found.no_reference == "Nobody spoke."
    assert found.settings[1].figures["word_error_rate"].value == pytest.approx(0.5)
    monkeypatch.setattr(Deaf, "hear", lambda *rest: Verdict("words", {"edits": 0.0, "words": 2.0}))
    again = Follower()
    assert finished(tmp_path / "s", chosen, again) == FINISHED and len(again.takes) == 3
    assert read(tmp_path / "s").failures == ()
    # References are tried again, too; one that the judge cannot hear is no reason to stop.
    monkeypatch.setattr("paretone.studies.execution.reference_speech", lambda *said: (np.zeros(100), 24_000))
    finished(tmp_path / "s", chosen)
    found = read(tmp_path / "s")
    assert (found.no_reference, found.references["word_error_rate"].n) == ("", 3)


def test_what_stood_in_a_settings_way_may_go_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = study(grid={"ditreducio.threshold": [0.5]})

    def broken(*arguments: object) -> None:
        raise RuntimeError("no luck today")

    with monkeypatch.context() as patched:
        patched.setattr("paretone.techniques.ditreducio.preparation.calibrate_model", broken)
        assert finished(tmp_path / "s", chosen) == FINISHED
    found = read(tmp_path / "s").settings
    assert [one.finished for one in found] == [3, 0] and "no luck today" in found[1].problem
    assert finished(tmp_path / "s", chosen) == FINISHED
    found = read(tmp_path / "s").settings
    assert [(one.finished, one.problem) for one in found] == [(3, ""), (3, "")]


def test_a_judge_that_is_not_there_ends_the_study_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(PlainError, match=r"Whisper-large-v3\) lacks .* in .*judges"):
        finished(tmp_path / "s", study(judges=["whisper"]))


def test_other_weights_are_not_mixed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(tmp_path / "s")
    monkeypatch.setattr("tests.engine.small_speech.FINGERPRINT", "1" * 64)
    with pytest.raises(StudyError, match="was started with other weights"):
        finished(tmp_path / "s")


def test_two_processes_do_not_run_the_same_study(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        store.begin(study())
        with alone_with(store.folder), pytest.raises(StudyError, match="is being run by another process"):
            run(study(), store, LocalExecutor(load), Follower())
        assert run(study(), store, LocalExecutor(load), Follower()) == FINISHED


def test_a_full_disk_ends_the_study_and_loses_nothing(tiny_disk: Path) -> None:
    many = study(sentences=[f"Sentence {number}." for number in range(30)])
    with pytest.raises(StudyError, match="the disk is full; free some space"):
        finished(tiny_disk, many)
    with Store(tiny_disk, read_only=True) as store:
        takes = store.takes()
    assert takes
    for take in (one for one in takes if one.cell.round == 0):
        assert len(soundfile.read(tiny_disk / "audio" / f"{take.take}.wav")[0]) == take.frames


# --- Killed -----------------------------------------------------------------------------------------------------------
def _kept(folder: Path) -> dict[object, tuple[str, str]]:
    """Takes in the study's file; each has its audio."""
    takes = takes_in(folder) if (folder / DATABASE).exists() else ()
    for take in takes:
        samples, _ = soundfile.read(folder / "audio" / f"{take.take}.wav")
        assert len(samples) == take.frames > 0
    return {take.cell: (take.take, take.created) for take in takes}


@pytest.mark.slow
def test_killed_at_random_moments_it_loses_nothing_and_redoes_nothing(tmp_path: Path) -> None:
    folder, moments = tmp_path / "killed", random.Random(KILLS)
    chosen = study(sentences=[f"This is sentence {number}." for number in range(5 * KILLS)], seeds=[0, 1])
    # A server with torch loaded makes processes in no time, so that most of them are killed at work.
    context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    if sys.platform != "win32":
        context.set_forkserver_preload(["tests.engine.studies.test_running", "paretone.studies.execution"])
    before: dict = {}
    found: Counter[int] = Counter()
    for _ in range(KILLS):
        process = context.Process(target=finished, args=(folder, chosen), daemon=True)
        process.start()
        time.sleep(moments.uniform(0.1, 1.0))
        process.kill()
        process.join()
        after = _kept(folder)
        assert before.items() <= after.items()
        found[len(after) - len(before)] += 1
        before = after
    assert finished(folder, chosen) == FINISHED
    whole = _kept(folder)
    assert before.items() <= whole.items()
    assert set(whole) == {cell for one in chosen.candidates for cell in chosen.cells(one)}
    print(f"{KILLS} kills; takes made between two: {sorted(found.elements())}")
    # Sample for sample what an undisturbed run gives, and not one file more.
    assert finished(tmp_path / "undisturbed", chosen) == FINISHED
    assert audio(folder) == audio(tmp_path / "undisturbed")


# --- The order of tasks -----------------------------------------------------------------------------------------------
def queue(chosen: Study, **known: object) -> Queue:
    return Queue(chosen, chosen.candidates, known.pop("finished", set()), known.pop("tables", {}), **known)


def all_tasks(one: Queue, worker: object = "a") -> list[Task]:
    found = []
    while (task := one.next(worker)) is not None:
        found.append(task)
        one.done(worker, 1.0, SimpleNamespace(fingerprint="table") if isinstance(task, Prepare) else None)
    return found


def test_two_workers_keep_to_their_own_sentences() -> None:
    chosen, one = study(), queue(study())
    done: dict[str, list[Speak]] = {"a": [], "b": []}
    for _ in range(3):
        for worker in done:
            done[worker].append(one.next(worker))
            one.done(worker, 1.0)
    assert [len({task.cell.utterance for task in tasks}) for tasks in done.values()] == [1, 1]
    # The third sentence is for both of them: nobody is idle while one is left.
    third = [one.next("a"), one.next("b")]
    assert third[0].cell.setting == chosen.candidates[0].key
    assert third[1] is None, "not before the baseline is there"
    one.done("a", 1.0)
    assert (one.next("a"), one.next("b")) != (None, None)
    assert one.progress == (7, 9)
    assert one.seconds_left(2) == 1.0


def test_references_and_tables_come_first_and_takes_wait_for_their_table() -> None:
    one = queue(study(grid={"ditreducio.threshold": [0.5], "steps.steps": ["off", 2]}, judges=["words"]))
    assert [type(task) for task in all_tasks(one)] == [MeasureReference] * 3 + [Prepare] * 2 + [Speak] * 9
    waiting = queue(study(grid={"ditreducio.threshold": [0.5]}))
    prepare, baseline = waiting.next("a"), waiting.next("b")
    assert isinstance(prepare, Prepare) and baseline.cell.setting != prepare.key
    waiting.done("b", 1.0)
    others = [waiting.next("b")]
    waiting.done("b", 1.0)
    others.append(waiting.next("b"))
    waiting.done("b", 1.0)
    assert all(task.cell.setting != prepare.key for task in others)
    assert waiting.next("b") is None and waiting.left
    assert waiting.seconds_left() is None, "nobody knows how long a calibration takes"


def test_the_order_changes_from_sentence_to_sentence() -> None:
    chosen = study(grid={"steps.steps": ["off", 2, 3, 5, 6]}, rounds=2)
    orders: dict[tuple, list[str]] = {}
    for task in all_tasks(queue(chosen)):
        orders.setdefault((task.cell.round, task.cell.utterance), []).append(task.cell.setting)
    assert len(orders) == 6
    assert all(Counter(order) == Counter(one.key for one in chosen.candidates) for order in orders.values())
    assert len({tuple(order) for order in orders.values()}) == 6
    baseline = chosen.candidates[0].key
    assert all(order[0] == baseline for (turn, _), order in orders.items() if turn == 0)
    assert not all(order[0] == baseline for (turn, _), order in orders.items() if turn == 1)


def test_a_dead_workers_task_goes_to_another_until_too_many_have_died_with_it() -> None:
    one = queue(study())
    task = one.next("a")
    assert one.lost("a") is None
    assert one.next("b") == task
    for number in range(1, ATTEMPTS):
        given_up = one.lost("b")
        assert (given_up is not None) == (number == ATTEMPTS - 1)
        if given_up is None:
            assert one.next("b") == task
    assert given_up == task
    assert len(all_tasks(one)) == 8
    assert one.progress == (9, 9) and one.lost("nobody") is None


def test_a_setting_that_cannot_be_run_is_taken_out() -> None:
    one = queue(study())
    first = one.next("a")
    one.give_up("a")
    one.drop(first.cell.setting)
    assert one.progress == (1, 7)
    assert {task.cell.setting for task in all_tasks(one)} == {other.key for other in study().candidates[1:]}
    assert not one.left


def test_the_estimate_counts_what_is_left_however_it_came_and_went() -> None:
    chosen, one = study(), queue(study())
    first = one.next("a")
    assert one.seconds_left() is None
    one.done("a", 2.0)
    assert one.seconds_left() == 2.0 * 8
    one.next("a")
    assert one.seconds_left() == 2.0 * 8, "what is under way is left"
    one.lost("a")
    assert one.seconds_left() == 2.0 * 8
    one.drop(next(each.key for each in chosen.candidates if each.key != first.cell.setting))
    assert one.seconds_left() == 2.0 * 5
