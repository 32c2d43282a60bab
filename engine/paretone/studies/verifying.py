"""Checking a study's results: whether what is stored agrees with itself, with the study's file, the weights and the
code, and whether some takes, made and judged again, are the same. Torch-free.

Nothing is written. Times are not checked: they are the machine's. What servers replied is judged again, not asked for
again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paretone.errors import PlainError, StudyError
from paretone.measure.evaluation.judges import Verdict
from paretone.measure.machine import code_fingerprint, describe
from paretone.observer import Observer
from paretone.reading import shown
from paretone.setting.compatibility import checkpoint_text
from paretone.studies import definition
from paretone.studies.store import Store, StoredTake
from paretone.studies.study import SERVER, Equipment, Failed, Made, Speak, Study, take_id
from paretone.wording import counted, grouped

if TYPE_CHECKING:
    from paretone.studies.execution import TaskRunner

SAME_DECIBELS = 40.0
"""Least signal over difference of two takes that count as the same: another processor changes the last digits."""
SAME_FIGURE = 0.02
"""Largest relative difference of a judge's figures for the same recording."""
MOST_NAMED = 3
"""How many differences a check names."""


@dataclass(frozen=True)
class Check:
    """One thing that was checked. ``agrees`` is ``None`` if it could not be checked."""

    title: str
    agrees: bool | None
    detail: str


def verify(store: Store, equip: Callable[[Equipment], TaskRunner], takes: int, observer: Observer) -> tuple[Check, ...]:
    """Check the study in ``store``; ``equip`` loads its model and judges; ``takes`` of them are made again. Raises
    :class:`StudyError` for a study without takes, :class:`PlainError` if the model cannot be loaded, and
    :class:`paretone.errors.Cancelled`."""
    if not store.takes():
        raise StudyError(f"The study in {store.folder} has no takes yet, so there is nothing to check; run it first.")
    return tuple(_Verification(store, equip, takes, observer).checks())


class _Verification:
    def __init__(self, store: Store, equip: Callable[[Equipment], TaskRunner], takes: int, observer: Observer) -> None:
        self._store, self._equip, self._wanted, self._observer = store, equip, takes, observer
        self._about = store.about()
        self._takes = store.takes()
        self._settings = {one.key: one for one in store.settings()}

    def checks(self) -> Iterator[Check]:
        self._observer.status("Checking what is stored")
        yield self._records()
        yield self._audio()
        study, definition_check = self._definition()
        yield definition_check
        if study is None:
            return
        yield self._texts(study)
        yield self._code()
        judges = dict.fromkeys(verdict.judge for take in self._takes for verdict in take.verdicts)
        runner = self._equip(study.equipment([*judges]))
        if any(one.origin != SERVER for one in self._settings.values()):
            yield self._weights(runner.equip(self._observer).info.all_weights)
        yield from self._counted_again()
        yield from self._again(study, runner)

    # --- What is stored -----------------------------------------------------------------------------------------------
    def _records(self) -> Check:
        wrong = [
            f"the setting {key} has the fingerprint {one.setting.fingerprint}"
            for key, one in self._settings.items()
            if one.setting.fingerprint != key or one.setting.baseline.fingerprint != one.baseline
        ]
        for take in self._takes:
            if take_id(take.cell) != take.take or take.cell.setting not in self._settings:
                wrong.append(f"the take {take.take} is not the one of its setting, sentence and seed")
        settings = counted(len(self._settings), "setting", "settings")
        takes = counted(len(self._takes), "take", "takes")
        return _check("Records", wrong, f"The fingerprints of {settings} and {takes} are right.")

    def _audio(self) -> Check:
        heard = [one for one in self._takes if one.cell.round == 0]
        wrong = [f"the audio of {one.take} is missing or damaged" for one in heard if not self._store.is_heard(one)]
        return _check("Audio", wrong, f"{counted(len(heard), 'recording is', 'recordings are')} there, all of them.")

    def _definition(self) -> tuple[Study | None, Check]:
        """The study as it was defined for its last run, and whether its file still says so."""
        file = Path(self._about["file"]) if self._about["file"] else None
        root = file.parent if file else self._store.folder
        try:
            study = definition.parse(self._about["definition"], str(self._store.folder), root)
        except PlainError as error:
            return None, Check("Definition", False, f"What was run can no longer be read: {error}")
        if file is None or not file.is_file():
            return study, Check("Definition", None, "The study's file is no longer there; its copy was used.")
        try:
            same = definition.read(file).definition == study.definition
        except PlainError as error:
            return study, Check("Definition", False, f"The study's file can no longer be read: {error}")
        wrong = [] if same else [f"{file} has been changed since the study ran"]
        return study, _check("Definition", wrong, f"{file} says what was run.")

    def _texts(self, study: Study) -> Check:
        wanted = {one.key: one.text for one in study.utterances}
        found = {take.cell.utterance: take.text for take in self._takes}
        wrong = [
            f"takes say {shown(text)}, which the study no longer has"
            for key, text in found.items()
            if wanted.get(key) != text
        ]
        count = counted(len(found), "sentence is", "sentences are")
        return _check("Texts", wrong, f"{count} the study's, in its voices.")

    def _code(self) -> Check:
        made = dict.fromkeys(take.machine.rpartition("; ")[2] for take in self._takes)
        now, code, codes = describe().line.rpartition("; ")[2], code_fingerprint(), self._store.codes()
        if others := [one for one in made if one != now]:
            return Check("Code", None, f"It was made with {' and '.join(others)}; here is {now}.")
        if codes and code not in codes:
            return Check("Code", None, f"Paretone's code has been changed: it is {code}, and was {', '.join(codes)}.")
        return Check("Code", True, f"It was made with what is installed here: {now}.")

    def _weights(self, loaded: str) -> Check:
        stored, found = self._about["checkpoint"], checkpoint_text(loaded)
        wrong = f"the study was made with the weights {checkpoint_text(stored)}, but {found} were found"
        return _check("Weights", [wrong] * (stored != loaded), f"The weights are those of the study, {found}.")

    def _counted_again(self) -> Iterator[Check]:
        """Errors in all stored transcripts, counted by the normalisers as they are now."""
        from paretone.measure.evaluation.transcripts import counted as errors_in

        transcripts, wrong = 0, []
        for take in self._takes:
            for one in take.verdicts:
                if not {"edits", "character_edits"}.isdisjoint(one.figures):
                    transcripts += 1
                    wrong.append(_differs(one, [errors_in(one.judge, take.text, one.heard)], take.take))
        if transcripts:
            right = f"The errors in {counted(transcripts, 'transcript', 'transcripts')}, counted again, are the same."
            yield _check("Normaliser", [*filter(None, wrong)], right)

    # --- Made and judged again ----------------------------------------------------------------------------------------
    def _again(self, study: Study, runner: TaskRunner) -> Iterator[Check]:
        spoken = {one.key: one for one in study.utterances}
        cloned = {one.key: one.cloned for one in study.candidates if one.origin == SERVER}
        there = [
            take
            for take in self._takes
            if take.cell.utterance in spoken
            and take.cell.round == 0
            and take.cell.setting in self._settings
            and (self._settings[take.cell.setting].origin != SERVER or take.cell.setting in cloned)
            and self._settings[take.cell.setting].candidate.fixed_by_seed
            and self._store.is_heard(take)
        ]
        there.sort(key=lambda one: (self._settings[one.cell.setting].place, one.take))
        # At equal distances, so that they are of different settings.
        count = min(self._wanted, len(there))
        sample = [there[(2 * place + 1) * len(there) // (2 * count)] for place in range(count)]
        artefacts, made, judged, unlike, misjudged = self._store.artefacts(), 0, 0, [], []
        for number, take in enumerate(sample):
            self._observer.progress(number, len(sample))
            stored, said_in, outcome = self._store.audio(take.take), spoken[take.cell.utterance], None
            if take.cell.setting in cloned:
                self._observer.status(f"Judging take {number + 1} of {len(sample)} again")
                said_in = replace(said_in, voice=cloned[take.cell.setting] or said_in.voice)
            else:
                self._observer.status(f"Making take {number + 1} of {len(sample)} again")
                made += 1
                candidate = self._settings[take.cell.setting].candidate
                again = Speak.of(take.cell, candidate, said_in, artefacts.get(take.cell.setting))
                outcome = runner.carry_out(again, self._observer)
            # The take that was made again knows where its pieces were joined; the stored audio does not.
            seams = outcome.seams if isinstance(outcome, Made) else ()
            heard = runner.hear(said_in, stored, take.sample_rate, seams)
            judged += len(take.verdicts)
            misjudged += [said for one in take.verdicts if (said := _differs(one, heard, take.take))]
            if isinstance(outcome, Failed):
                unlike.append(f"the take {take.take} could not be made again: {outcome.sentence}")
            elif isinstance(outcome, Made) and (said := _unlike(stored, outcome.take.samples, take)):
                unlike.append(said)
        if sample:
            self._observer.progress(len(sample), len(sample))
        else:
            adapting = not all(one.candidate.fixed_by_seed for one in self._settings.values())
            why = ": some follow measured times, so no seed gives them again" if adapting else ""
            yield Check("Takes made again", None, f"No take was made again{why}.")
        if made:
            yield _check("Takes made again", unlike, f"{counted(made, 'take', 'takes')} made again: the same.")
        if judged:
            said = f"{counted(judged, 'verdict', 'verdicts')} on {counted(len(sample), 'take', 'takes')}: the same."
            yield _check("Judges", misjudged, said)


def _check(title: str, wrong: Sequence[str], right: str) -> Check:
    if not wrong:
        return Check(title, True, right)
    named = "; ".join(wrong[:MOST_NAMED])
    rest = f"; and {grouped(len(wrong) - MOST_NAMED)} more" if len(wrong) > MOST_NAMED else ""
    return Check(title, False, f"{named[0].upper()}{named[1:]}{rest}.")


def _unlike(before: np.ndarray, after: np.ndarray, take: StoredTake) -> str:
    """In what a take made again differs, or ``""``."""
    if len(before) != len(after):
        lengths = " instead of ".join(f"{len(one) / take.sample_rate:.2f} s" for one in (after, before))
        return f"the take {take.take} is {lengths} long"
    noise = float(np.sum(np.square(after - before, dtype=np.float64)))
    signal = float(np.sum(np.square(before, dtype=np.float64)))
    ratio = math.inf if not noise else 10 * math.log10(max(signal, 1e-12) / noise)
    return "" if ratio >= SAME_DECIBELS else f"the take {take.take} is another ({ratio:.0f} dB over the difference)"


def _differs(before: Verdict, heard: Sequence[Verdict], take: str) -> str:
    now = next((one.figures for one in heard if one.judge == before.judge), {})
    for name, value in before.figures.items():
        found = now.get(name)
        if found is None or abs(found - value) > SAME_FIGURE * max(abs(value), 1.0):
            said = "nothing" if found is None else f"{found:g}"
            return f"the judge {before.judge} found {name} {value:g} in {take}, and now {said}"
    return ""
