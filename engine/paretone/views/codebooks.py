"""View of a masked model's speech from its first codebooks: what each adds (as in the roofline post). Torch-free at
import."""

from __future__ import annotations

import numpy as np

from paretone.errors import SettingError
from paretone.setting.knobs import Knob
from paretone.views.figure import Axis, Curve, HeatMap, Lines
from paretone.views.view import Findings, Stages, Task, View, count_knob

MOST_FRAMES = 120
"""Most columns of a drawn spectrogram; longer ones are averaged."""


def knobs(layers: int) -> tuple[Knob, ...]:
    meaning = "Number of first codebooks whose spectrogram is drawn next to that of all."
    return (count_knob("codebooks", "Codebooks", meaning, 4, 64, symbol="k"),)


def compute(task: Task) -> Findings:
    """Speak the sentence, and decode its first passage from the first k codebooks, for every k."""
    import torch

    from paretone.audio.mel import MelFrontEnd
    from paretone.measure.fidelity import log_mel_distance
    from paretone.models.families.masked import MaskedSpeech
    from paretone.speaking import synthesise
    from paretone.techniques import resolve

    model, setting, utterance = task.model, task.setting.baseline, task.utterance
    if not isinstance(model, MaskedSpeech):
        raise SettingError(f"{model.info.title} speaks no codebooks; load a masked model.")
    work = Stages(task.observer, 100)
    spoken = synthesise(model, utterance.text, utterance.voice, setting, (), work.part(70, "Speaking"))
    assert spoken.trace.demasking is not None
    passage = spoken.trace.demasking.passages[0]
    count, plan, mels = len(passage.codes), resolve(model.info, setting), []
    for first in range(1, count + 1):
        samples = model.decode_partial(
            passage, passage.steps - 1, utterance.voice, plan, task.observer.check, codebooks=first
        )
        mels.append(MelFrontEnd()(torch.from_numpy(samples))[0].numpy())
        work.done(30 / count)
    distances = tuple(log_mel_distance(mels[-1], one) for one in mels)
    chosen = min(int(task.knobs["codebooks"]), count)
    curve = Curve("first k codebooks", tuple(float(one) for one in range(1, count + 1)), distances)
    lines = Lines(
        "Distance to all codebooks", Axis("Codebooks k"), Axis("Log-mel distance", "natural-log units"), (curve,)
    )
    seconds = len(passage.codes[0]) * spoken.trace.demasking.frame_seconds
    pictures = [_spectrogram(mels[k - 1], seconds, f"k = {k} of {count}") for k in dict.fromkeys((1, chosen, count))]
    half = next(k for k, one in enumerate(distances, 1) if one <= distances[0] / 2)
    caption = (
        f"The first {chosen} of {count} codebooks are {distances[chosen - 1]:.3f} from all of them, the first alone "
        f"{distances[0]:.3f}; half of that is left from {half} on. All codes are of one synthesis, and the others add "
        f"nothing. paretone speak --codebooks {chosen} writes what it sounds like."
    )
    return Findings((lines, *pictures), caption)


def _spectrogram(mel: np.ndarray, seconds: float, title: str) -> HeatMap:
    """``mel`` (frames, bands) in natural-log units, high bands on top."""
    starts = np.arange(0, len(mel), -(-len(mel) // MOST_FRAMES))
    means = np.add.reduceat(mel.astype(np.float64), starts) / np.diff(np.append(starts, len(mel)))[:, None]
    times = tuple((starts * seconds / len(mel)).tolist())
    rows = tuple(float(band) for band in range(mel.shape[1], 0, -1))
    values = tuple(map(tuple, means.T[::-1].tolist()))
    colour = Axis("Log mel", "natural-log units")
    return HeatMap(title, Axis("Time", "s"), Axis("Mel band"), colour, times, rows, values)


VIEW = View(
    name="codebooks",
    title="First codebooks",
    question="How much of the speech is in the first codebooks?",
    source="Why Is Diffusion TTS Slow? A Roofline Analysis of OmniVoice Inference",
    families=("masked",),
    knobs=knobs,
    compute=compute,
)
