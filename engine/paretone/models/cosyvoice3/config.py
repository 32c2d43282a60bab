"""Constants, options and sizes of CosyVoice 3. The defaults are the release's: ``cosyvoice3.yaml`` of
``FunAudioLLM/Fun-CosyVoice3-0.5B-2512``. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass, replace

from paretone.models.cosyvoice2.config import INSTRUCTION, MODE, STREAM, FlowSizes, HiftConfig
from paretone.models.cosyvoice2.config import OPTIONS as COSYVOICE2_OPTIONS
from paretone.models.f5.config import BackboneConfig
from paretone.setting.knobs import amount, count

NAME, REINFORCED = "Fun-CosyVoice3-0.5B", "Fun-CosyVoice3-0.5B-RL"
"""The release, and the same with its language model after reinforcement learning."""
LAYOUT = "cosyvoice3"
"""Layout of the official checkpoint, in declarations."""
ESTIMATOR = BackboneConfig("DiT", dim=1024, depth=22, heads=16, pe_attn_head=1)
"""F5's layers, with positions in the first head only."""


@dataclass(frozen=True)
class FlowConfig(FlowSizes):
    """Speech tokens to mel frames."""

    estimator: BackboneConfig = ESTIMATOR
    look_ahead_channels: int = 1024


VOCODER = HiftConfig(causal=True)
HIGHEST = 12000.0
"""Upper limit of the prompt's mel bands in hertz; CosyVoice 2's is 8000."""

PREFIX = "You are a helpful assistant."
"""Begins every prompt; without it and the end-of-prompt mark, the model repeats the prompt or babbles."""
SILENT = frozenset({1, 2, 28, 29, 55, 248, 494, 2241, 2242, 2322, 2323})
"""Speech tokens of silence."""
MOST_SILENT = 5
"""Longest run of silent tokens that reaches the flow."""

_VOWELS = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW"
_CONSONANTS = "B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH"
_PINYIN = (
    "a ai an ang ao b c ch d e ei en eng f g h i ian in ing iu ià iàn iàng iào iá ián iáng iáo iè ié iòng ióng iù "
    "iú iā iān iāng iāo iē iě iōng iū iǎ iǎn iǎng iǎo iǒng iǔ j k l m n o ong ou p q r s sh t u uang ue un uo uà "
    "uài uàn uàng uá uái uán uáng uè ué uì uí uò uó uā uāi uān uāng uē uě uī uō uǎ uǎi uǎn uǎng uǐ uǒ vè w x y z zh "
    "à ài àn àng ào á ái án áng áo è èi èn èng èr é éi én éng ér ì ìn ìng í ín íng ò òng òu ó óng óu ù ùn ú ún ā āi "
    "ān āng āo ē ēi ēn ēng ě ěi ěn ěng ěr ī īn īng ō ōng ōu ū ūn ǎ ǎi ǎn ǎng ǎo ǐ ǐn ǐng ǒ ǒng ǒu ǔ ǔn ǘ ǚ ǜ"
)
_STRESSED = (vowel + stress for vowel in _VOWELS.split() for stress in ("", "0", "1", "2"))
ADDED = (
    "<|endofsystem|>",
    *(f"[{phone}]" for phone in (*sorted((*_STRESSED, *_CONSONANTS.split())), *_PINYIN.split())),
)
"""Tokens after CosyVoice 2's: phones of English and parts of Chinese syllables, to say how something is pronounced."""

_MEANINGS = {
    MODE.name: "Zero-shot continues the recording and needs its transcript; it follows an instruction, too. "
    "Cross-lingual takes only the voice from the recording, for texts in another language; with an instruction, it "
    "takes only the voice and follows the instruction.",
    INSTRUCTION.name: "How to speak, for the modes “Zero-shot” and “With an instruction”, such as “Please speak as "
    "fast as possible.”",
    STREAM.name: "Decode audio for every second of speech tokens as they arrive. Off: decode the same audio at the "
    "end, with less time and memory. Streaming keeps 180 MB for each of the first ten seconds of recording and "
    "speech, and 90 MB for each later one.",
}
OPTIONS = (
    *(replace(knob, meaning=_MEANINGS.get(knob.name, knob.meaning)) for knob in COSYVOICE2_OPTIONS),
    count(
        "flow_steps",
        "Steps of the flow",
        "Steps from noise to mel frames on the release's cosine schedule. Fewer are faster and rougher.",
        default=FlowConfig.steps,
        between=(1, 32),
    ),
    amount(
        "flow_guidance",
        "Guidance of the flow",
        "Strength of classifier-free guidance in the flow. 0 leaves out the second branch, half of the flow's work.",
        default=FlowConfig.guidance,
        between=(0.0, 3.0),
        step=0.1,
    ),
)
