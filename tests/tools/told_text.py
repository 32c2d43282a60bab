"""``python -m tests.tools.told_text``: how a natural F5 speaks when its text is aligned less exactly.

With every phone told at its own frames, predicted naturalness does not fall with the steps; with phones spread over
their words or phrases the model decides more itself, and steps matter. Each alignment is a study over steps, by the
judges of all five figures, on sentences that nothing was trained on; a study that was stopped resumes.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from paretone.bench.report import table
from paretone.errors import CheckpointError, PlainError
from paretone.front_end.phones import EDGE, PUNCTUATION, TimedPhone
from paretone.measure.evaluation.judges import judge_named
from paretone.measure.metrics import metric
from paretone.models import load_model
from paretone.models.base import SpeechModel, Voice
from paretone.models.f5.adapter import F5Speech
from paretone.models.f5.config import NATURAL_PHONES
from paretone.models.f5.front_end import FramePhones
from paretone.models.voices import read_voice
from paretone.studies import definition, results
from paretone.studies.evaluation_sets import StudySentence
from paretone.studies.report import write_report
from paretone.studies.results import SettingResult
from paretone.studies.running import LocalExecutor, StudyFollower, run
from paretone.studies.store import Store
from paretone.studies.study import Study
from paretone.studies.wording import figure_text
from tests.tools.recipes.alignments import Alignment, evened, respaced

MODEL = "f5-mini"


def phrases(phones: Sequence[TimedPhone]) -> Iterator[list[int]]:
    """Indices into ``phones`` for each phrase, including blanks between words."""
    places: list[int] = []
    for place, (name, _, _) in enumerate((*phones, (EDGE, 0.0, 0.0))):
        if name not in (EDGE, *PUNCTUATION):
            places.append(place)
        elif places:
            yield places
            places = []


def evened_phrases(phones: Sequence[TimedPhone]) -> tuple[TimedPhone, ...]:
    """``phones``, those of each phrase all of one length."""
    return respaced(phones, np.ones_like, phrases)


TOLD: Mapping[str, Alignment] = {"frame": tuple, "word": evened, "phrase": evened_phrases}
"""Alignments, the most exact first."""
JUDGES = ("words", "naturalness", "voice", "melody")
FIGURES = ("word_error_rate", "naturalness", "voice_similarity", "pitch_range", "diversity", "real_time_factor")
STEPS, SENTENCES, VOICES, SEEDS = (1, 2, 4, 8, 16), 8, 2, 3


class ToldFrontEnd(FramePhones):
    """Tells the model the phones of text and prompt by another alignment."""

    def __init__(self, folder: Path, alignment: Alignment) -> None:
        super().__init__(folder)
        self._alignment = alignment

    def labels(self, phones: Sequence[TimedPhone], count: int) -> np.ndarray:
        return super().labels(self._alignment(phones), count)


@dataclass(frozen=True)
class Evaluation:
    """What is spoken, and by what."""

    folder: Path
    """The exported model."""
    steps: tuple[int, ...] = STEPS
    sentences: int = SENTENCES
    voices: int = VOICES
    """How many speak."""
    voices_in: Path | None = None
    """Folder of their recordings; ``None`` for the model's own voices."""
    seeds: int = SEEDS
    guidance: float = 0.0
    judges: tuple[str, ...] = JUDGES

    def study(self, told: str) -> Study:
        """The study of one alignment. Raises :class:`PlainError`."""
        given = {
            "title": f"Text told by {told}",
            "model": MODEL,
            "folder": str(self.folder),
            "sentences": "unseen",
            "count": self.sentences,
            "seeds": list(range(1, self.seeds + 1)),
            "judges": list(self.judges),
            "options": {"guidance": self.guidance},
            "grid": {"steps": list(self.steps)},
        }
        if self.voices_in is None:
            return definition.parse({**given, "voices": self.voices})
        study, voices = definition.parse(given), _voices_in(self.voices_in)[: self.voices]
        texts = dict.fromkeys(one.text for one in study.utterances)
        return replace(study, utterances=tuple(StudySentence(text, voice) for voice in voices for text in texts))


def loading(told: str) -> Callable[..., SpeechModel]:
    """Loads models that are told texts by this alignment."""

    def load(model: str, **request: object) -> SpeechModel:
        speech = load_model(model, **request)  # type: ignore[arg-type]
        if not isinstance(speech, F5Speech) or speech.info.text_front_end != NATURAL_PHONES:
            raise CheckpointError(
                f"{speech.info.checkpoint} does not read the phones of natural speech; give the export of voice-f5."
            )
        speech.front_end = ToldFrontEnd(Path(speech.info.checkpoint).parent, TOLD[told])
        return speech

    return load


def evaluate(
    one: Evaluation, work: Path, told: Sequence[str] = tuple(TOLD), say: Callable[[str], None] = print
) -> list[dict[str, object]]:
    """Run the studies of ``told`` in ``work``; all figures by alignment and steps. Raises :class:`PlainError`."""
    rows: list[dict[str, object]] = []
    for name in told:
        place = work / f"{name}.study"
        with Store(place) as store:
            study = one.study(name)
            store.begin(study)
            run(study, store, LocalExecutor(loading(name)), _Follower(say))
            found = results.results(store)
        report = place / "report"
        report.mkdir(exist_ok=True)
        write_report(found, report)
        rows += [_row(name, setting) for setting in found.settings if setting.finished]
        for sentence in found.failures:
            say(f"Failed: {sentence}")
    return rows


def _row(told: str, one: SettingResult) -> dict[str, object]:
    figures = {name: figure_text(metric(name), one.figures.get(name)) for name in FIGURES}
    return {"told by": told, "steps": one.setting.options["steps"]} | figures


def _voices_in(folder: Path) -> list[Voice]:
    names = sorted(path.stem for path in folder.glob("*.wav"))
    if not names:
        raise PlainError(f"There is no voice in {folder}; give a folder with NAME.wav and NAME.json.")
    return [read_voice(folder, name) for name in names]


class _Follower(StudyFollower):
    """Says what a study does."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def begun(self, title: str, done: int, total: int) -> None:
        if not done % 20:
            self._say(f"{done} of {total} tasks are done")


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.told_text", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="export of voice-f5")
    parser.add_argument("--work", type=Path, required=True, help="folder for the studies, their speech and reports")
    parser.add_argument("--told", nargs="+", choices=tuple(TOLD), default=list(TOLD), help="alignments (default: all)")
    parser.add_argument("--steps", type=int, nargs="+", default=list(STEPS), help="steps (default: %(default)s)")
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="held-out sentences (default: %(default)s)")
    parser.add_argument("--voices", type=int, default=VOICES, help="how many voices speak (default: %(default)s)")
    parser.add_argument(
        "--voices-in", type=Path, metavar="FOLDER", help="speak in voices of this folder (default: the model's)"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="takes of each sentence (default: %(default)s)")
    parser.add_argument("--guidance", type=float, default=0.0, help="strength of guidance (default: %(default)s)")
    given = parser.parse_args(arguments)
    judges = tuple(name for name in JUDGES if not judge_named(name).problem())
    one = Evaluation(
        given.folder,
        tuple(given.steps),
        given.sentences,
        given.voices,
        given.voices_in,
        given.seeds,
        given.guidance,
        judges,
    )
    try:
        say("\n".join(table(evaluate(one, given.work, given.told, say))))
    except PlainError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
