"""How close a bundled model comes to recordings of a person whom it has never heard.

Each recording, with its transcript, is judged as it is, as the copy that the vocoder's mel reader and decoder make of
it, and as the prompt of sentences that nothing was trained on. Similarity is measured to the recording, to the other
recordings and to the bundled voices: recordings of one person differ, too, and what counts is how far a model comes
from the bundled voices towards them. All recordings should be of one person.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from paretone.audio.recording import Recording, read_recording
from paretone.audio.resampling import resample
from paretone.bench import bundled
from paretone.bench.report import Report
from paretone.bench.voices import Heard, Panel, mean_of_known, sentences
from paretone.commands.arguments import at_least, positive
from paretone.commands.compare import prepare, typed_side
from paretone.errors import AudioError
from paretone.files import write_wav
from paretone.measure.machine import describe
from paretone.measure.metrics import estimate
from paretone.measure.verdicts import copied
from paretone.models.base import SpeechModel, Voice
from paretone.models.catalogue import voices
from paretone.models.minis.natural_decoder import SAMPLE_RATE
from paretone.models.minis.natural_vocoder import LatentVocoder
from paretone.models.voices import own_voice
from paretone.paths import resource
from paretone.speaking import synthesise

NAME = "own-voices"
RECORDINGS, COPIES = "the recordings", "their copies"
DEFINITION = "Similarity (cosine of Resemblyzer's embeddings) of the model's speech to the recording that prompted it."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="f5-mini", help="bundled model (default: %(default)s)")
    parser.add_argument("--recording", action="append", required=True, metavar="FILE", help="repeat for more")
    parser.add_argument("--transcript", action="append", required=True, help="one per recording, in order")
    parser.add_argument("--device", default="cpu", help="auto, cpu, cuda or mps (default: %(default)s)")
    parser.add_argument("--threads", type=positive, default=1, help="threads of the processor (default: %(default)s)")
    parser.add_argument("--folder", default="", help="folder of the checkpoint, if not the usual one")
    parser.add_argument(
        "--sentences", type=at_least(2), default=10, help="how many sentences each prompts (default: %(default)s)"
    )
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="folder for what is heard")


def run(arguments: argparse.Namespace) -> Report:
    """Judge the recordings, copy them, and speak in their voice."""
    persons = _persons(arguments.recording, arguments.transcript)
    texts = sentences()[: arguments.sentences]
    said = [one.transcript for one in persons]
    panel = Panel((*texts, *said), (*persons, *voices(arguments.model, arguments.folder)))
    read = [read_recording(one.audio) for one in persons]
    heard = {RECORDINGS: read, COPIES: _copies(read)}
    rows: list[dict[str, object]] = []
    for title, recordings in heard.items():
        takes = list(zip(persons, said, recordings, strict=True))
        _keep(arguments.keep, title, takes)
        rows.append(_row(title, [panel.judge(text, own, *_sound(one)) for own, text, one in takes], persons))
    model = bundled.loaded(arguments)
    spoken = list(_spoken(model, arguments.model, persons, texts))
    _keep(arguments.keep, arguments.model, spoken)
    takes_heard = [panel.judge(text, own, *_sound(one)) for own, text, one in spoken]
    rows.append(_row(arguments.model, takes_heard, persons))
    likeness = estimate("voice_similarity", [one.own for one in takes_heard])
    interval = (likeness.low, likeness.high)
    return Report(NAME, likeness.value, interval, DEFINITION, tuple(rows), describe().to_json())


def _persons(files: Sequence[str], transcripts: Sequence[str]) -> list[Voice]:
    """Raises :class:`AudioError` if files and transcripts differ in number."""
    if len(files) != len(transcripts):
        raise AudioError(
            f"There are {len(files)} recordings and {len(transcripts)} transcripts; give each recording its own."
        )
    return list(map(own_voice, files, transcripts))


def _copies(recordings: Sequence[Recording]) -> list[Recording]:
    """What mel reader and decoder make of them."""
    vocoder = LatentVocoder.load(resource("models", "natural-vocoder"))
    given = (resample(one.samples, one.sample_rate, SAMPLE_RATE) for one in recordings)
    return [Recording(copied(vocoder, samples), SAMPLE_RATE) for samples in given]


Take = tuple[Voice, str, Recording]
"""Whose voice, what is said, and the sound."""


def _spoken(model: SpeechModel, name: str, persons: Sequence[Voice], texts: Sequence[str]) -> Iterator[Take]:
    side = typed_side("", name)
    prepare(side, model)
    for own in persons:
        bundled.say(f"{name} in the voice of {own.title}: {len(texts)} sentences …")
        for text in texts:
            take = synthesise(model, text, own, side.setting, side.artefacts)
            yield own, text, Recording(take.samples, take.sample_rate)


def _sound(recording: Recording) -> tuple[np.ndarray, int]:
    return recording.samples, recording.sample_rate


def _keep(folder: Path | None, title: str, takes: Sequence[Take]) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for at, (own, _, recording) in enumerate(takes):
        write_wav(folder / f"{title}-{own.title}-{at:02d}.wav", recording.samples, recording.sample_rate)


def _row(title: str, heard: Sequence[Heard], persons: Sequence[Voice]) -> dict[str, object]:
    own = {one.id for one in persons}
    alike = [(name in own, value) for one in heard for name, value in one.alike.items()]
    return {
        "speech": title,
        "takes": len(heard),
        "its recording": None if title == RECORDINGS else mean_of_known([one.own for one in heard]),
        "other recordings": mean_of_known([value for is_own, value in alike if is_own]),
        "bundled voices": mean_of_known([value for is_own, value in alike if not is_own]),
        "word errors": sum(one.edits for one in heard) / sum(one.words for one in heard),
        "naturalness": mean_of_known([one.naturalness for one in heard]),
        "pitch range": mean_of_known([one.spread for one in heard]),
        "Hz": mean_of_known([one.pitch for one in heard]),
        "formants": mean_of_known([one.formants for one in heard]),
    }
