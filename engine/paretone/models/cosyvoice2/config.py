"""Constants, options and sizes of CosyVoice 2. The defaults are the release's: ``cosyvoice2.yaml`` of
``FunAudioLLM/CosyVoice2-0.5B``. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from paretone.extras import how_to_add
from paretone.sampling.options import GUIDANCE, SPACING, SPEED, STEPS, SWAY, TOP_K, TOP_P
from paretone.setting.knobs import Choice, Switch, Text, Values

INSTALL = how_to_add("cosyvoice")
LEAST_TOKENS, MOST_TOKENS = 2.0, 20.0
"""Bounds of speech tokens per text token: speech cannot end before the first, and is cut off after the second."""
USUAL_TOKENS = 7.5
"""Default speech tokens per text token, without a transcript: ten text tokens in three seconds."""
FASTEST_TRANSCRIPT, SLOWEST_TRANSCRIPT = 2.5, 25.0
"""Bounds of speech tokens per token of a transcript that may fit its recording: ten tokens per second, and one."""

ZERO_SHOT, CROSS_LINGUAL, INSTRUCT = "zero_shot", "cross_lingual", "instruct"
MODE = Choice(
    "mode",
    "Mode",
    "Zero-shot continues the recording and needs its transcript; cross-lingual takes only the voice from it, for texts "
    "in another language; with an instruction, it takes only the voice and follows the instruction.",
    default=ZERO_SHOT,
    values=(ZERO_SHOT, CROSS_LINGUAL, INSTRUCT),
    titles=("Zero-shot", "Cross-lingual", "With an instruction"),
)

INSTRUCTION = Text(
    "instruction",
    "Instruction",
    "Instruction for the mode “With an instruction”, such as “Speak softly and slowly.”",
    default="",
)


def without_effect(option: str, options: Values) -> str:
    """Why an option has no effect under ``options``, as a sentence, or ``""``."""
    if option != INSTRUCTION.name or options[MODE.name] == INSTRUCT:
        return ""
    return f"Only for the mode “{MODE.titles[MODE.values.index(INSTRUCT)]}”; choose that first."


REPEATS = Choice(
    "repeats",
    "Repeated tokens",
    "A token among the last ten is resampled from all; since 2026 the release excludes the repeated one. "
    "Papers from before used the older rule.",
    default="2026",
    values=("2026", "2025"),
    titles=("Another one (2026)", "Any one (2025)"),
)

STREAM = Switch(
    "stream",
    "Streaming",
    "Decode audio for every second of speech tokens as they arrive. Off: decode the same audio at the end, "
    "with less time and memory. Streaming keeps 230 MB for each of the first ten seconds of recording and "
    "speech, and 57 MB for each later one.",
    default=True,
)

OPTIONS = (
    MODE,
    INSTRUCTION,
    replace(TOP_P, default=0.8),
    TOP_K,
    REPEATS,
    replace(SPEED, meaning=f"{SPEED.meaning} At a speed other than 1, audio starts only at the end."),
    STREAM,
)


@dataclass(frozen=True)
class EncoderConfig:
    """The conformer that turns each speech token into two mel frames."""

    width: int = 512
    heads: int = 8
    feed_forward: int = 2048
    layers: int = 6
    upsampled_layers: int = 4
    """Layers at the rate of mel frames."""


@dataclass(frozen=True)
class EstimatorConfig:
    """The network that estimates the flow's velocity."""

    channels: int = 256
    heads: int = 8
    head_width: int = 64
    blocks: int = 4
    """Transformer blocks per stage."""
    middle_stages: int = 12


@dataclass(frozen=True)
class FlowSizes:
    """What every flow from speech tokens to mel frames declares."""

    tokens: int = 6561
    speaker_width: int = 192
    bands: int = 80
    steps: int = 10
    guidance: float = 0.7
    """Strength of classifier-free guidance of the velocity; 0 is none."""
    look_ahead: int = 3
    """Tokens after a chunk that its frames depend on."""
    chunk: int = 25
    """Tokens per chunk; attention sees its own chunk and all earlier ones."""


FLOW_OPTIONS = (
    replace(STEPS, default=FlowSizes.steps),
    replace(SPACING, default="uniform"),
    SWAY,
    replace(
        GUIDANCE,
        meaning="Strength of classifier-free guidance of the velocity: c + g·(c − u). 0 runs one branch only.",
        default=FlowSizes.guidance,
        trajectory=True,
    ),
)
"""Options of the flow's sampling. A sway of −1 is upstream's grid, 1 − cos(π/2·t), to the bit."""


@dataclass(frozen=True)
class FlowConfig(FlowSizes):
    encoder: EncoderConfig = EncoderConfig()
    estimator: EstimatorConfig = EstimatorConfig()


FRAMES_PER_TOKEN = 2
TOKEN_RATE = 25
"""Speech tokens per second."""


@dataclass(frozen=True)
class HiftConfig:
    """Mel frames to audio."""

    bands: int = 80
    channels: int = 512
    """Channels before the first upsampling; each stage halves them."""
    pitch_channels: int = 512
    upsampling: tuple[int, ...] = (8, 5, 3)
    upsampling_kernels: tuple[int, ...] = (16, 11, 7)
    kernels: tuple[int, ...] = (3, 7, 11)
    source_kernels: tuple[int, ...] = (7, 7, 11)
    dilations: tuple[int, ...] = (1, 3, 5)
    window: int = 16
    """Samples per frame of the inverse short-time Fourier transform."""
    hop: int = 4
    harmonics: int = 8
    """Harmonics of the source above the fundamental."""
    sample_rate: int = 24000
    causal: bool = False
    """Whether it is CosyVoice 3's."""
    float32_phases: bool = False
    """Whether the source's phases are float32 as upstream, for comparison."""

    @property
    def samples_per_frame(self) -> int:
        return prod(self.upsampling) * self.hop
