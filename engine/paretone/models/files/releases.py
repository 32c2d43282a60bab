"""The official releases: which files belong to each model, where they lie, and under which licence. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paretone.reading import parsed_json

NON_COMMERCIAL = "CC-BY-NC-4.0"
MIT = "MIT"
APACHE = "Apache-2.0"
HIGGS = "LicenseRef-Boson-Higgs-Audio-2-Community"


@dataclass(frozen=True)
class Licence:
    """A licence in a few words, and where it can be read."""

    summary: str
    link: str


LICENCES: Mapping[str, Licence] = {
    NON_COMMERCIAL: Licence(
        "use, share and adapt with attribution, for non-commercial purposes only.",
        "https://creativecommons.org/licenses/by-nc/4.0/",
    ),
    MIT: Licence("use for any purpose; keep the copyright notice.", "https://opensource.org/license/mit"),
    APACHE: Licence(
        "use for any purpose; keep the notices and say what was changed.", "https://www.apache.org/licenses/LICENSE-2.0"
    ),
    HIGGS: Licence(
        "use for any purpose with attribution to Boson AI; above 100,000 users a year, only with their consent.",
        "https://huggingface.co/bosonai/higgs-audio-v2-tokenizer",
    ),
}
"""By their SPDX identifier."""


INDEX = "model.safetensors.index.json"


def shard_of_each(content: bytes) -> dict[str, str]:
    """The file of each weight, from the contents of an :data:`INDEX`. Raises :class:`ValueError` for anything else."""
    try:
        listed = dict(parsed_json(content)["weight_map"])
        # A shard lies next to its index: a name with a folder in it would lead elsewhere.
        sound = bool(listed) and all(Path(name).name == name for name in listed.values())
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from None
    if not sound:
        raise ValueError("it names no files next to it")
    return listed


@dataclass(frozen=True)
class RemoteFile:
    """One file of a repository, and where it is put: ``saved_as`` is relative to the model's folder.

    An ``index`` lists further files of its repository, which belong next to it: the shards of the weights.
    """

    repository: str
    name: str
    saved_as: str
    licence: str
    index: bool = False


@dataclass(frozen=True)
class Release:
    """The files of one model."""

    licence: str
    """The licence to accept: the strictest of the files' licences."""
    files: tuple[RemoteFile, ...]

    @property
    def terms(self) -> str:
        """All licences in one line, to be shown before anything is fetched."""
        return "; ".join(f"{one.repository}/{one.name}: {one.licence}" for one in self.files)


_VOCODER = tuple(
    RemoteFile("charactr/vocos-mel-24khz", name, f"../vocos-mel-24khz/{name}", MIT)
    for name in ("config.yaml", "pytorch_model.bin")
)


def _official(repository: str, weights: str, vocabulary: str) -> Release:
    return Release(
        NON_COMMERCIAL,
        (
            RemoteFile("SWivid/F5-TTS", vocabulary, "vocab.txt", NON_COMMERCIAL),
            *_VOCODER,
            RemoteFile(repository, weights, Path(weights).name, NON_COMMERCIAL),
        ),
    )


_MEGATTS3 = tuple(
    RemoteFile("ByteDance/MegaTTS3", name, name, APACHE)
    for name in (
        *(f"{part}/config.yaml" for part in ("diffusion_transformer", "aligner_lm", "duration_lm", "wavvae")),
        *(
            f"g2p/{name}.json"
            for name in (
                "added_tokens",
                "config",
                "generation_config",
                "special_tokens_map",
                "tokenizer",
                "tokenizer_config",
                "vocab",
            )
        ),
        "g2p/merges.txt",
        *(f"{part}/model_only_last.ckpt" for part in ("aligner_lm", "duration_lm")),
        "wavvae/decoder.ckpt",
        "g2p/model.safetensors",
        "diffusion_transformer/model_only_last.ckpt",
    )
)
"""All of the release but its training logs. It has no encoder: ``wavvae/model_only_last.ckpt`` was never published."""

_COSYVOICE2 = tuple(
    RemoteFile("FunAudioLLM/CosyVoice2-0.5B", name, name, APACHE)
    for name in (
        *(f"CosyVoice-BlankEN/{name}" for name in ("config.json", "vocab.json", "merges.txt")),
        "campplus.onnx",
        "hift.pt",
        "flow.pt",
        "speech_tokenizer_v2.onnx",
        "llm.pt",
    )
)
"""Needed files of the release: neither its configuration, which is code, nor the weights in ``CosyVoice-BlankEN``, of
which ``llm.pt`` has newer ones, nor the second tokenizer and the copy of the flow for TensorRT."""


def _llasa(size: str, weights: str) -> Release:
    """With the release of XCodec2 that was converted for ``transformers``, whose encoder alone can be used here. To
    the Llamas underneath, Meta's community licence applies as well."""
    repository, codec = f"HKUSTAudio/Llasa-{size}", "HKUSTAudio/xcodec2-hf"
    return Release(
        NON_COMMERCIAL,
        (
            *(RemoteFile(repository, name, name, NON_COMMERCIAL) for name in ("config.json", "tokenizer.json")),
            RemoteFile(codec, "config.json", "../xcodec2/config.json", NON_COMMERCIAL),
            RemoteFile(repository, weights, weights, NON_COMMERCIAL, index=weights == INDEX),
            RemoteFile(codec, "model.safetensors", "../xcodec2/model.safetensors", NON_COMMERCIAL),
        ),
    )


_OMNIVOICE = (
    *(RemoteFile("k2-fsa/OmniVoice", name, name, NON_COMMERCIAL) for name in ("config.json", "tokenizer.json")),
    *(
        RemoteFile("k2-fsa/OmniVoice", f"audio_tokenizer/{name}", f"audio_tokenizer/{name}", HIGGS)
        for name in ("config.json", "model.safetensors")
    ),
    RemoteFile("k2-fsa/OmniVoice", "model.safetensors", "model.safetensors", NON_COMMERCIAL),
)
"""The code is published under Apache-2.0, the weights are not: some of what they were trained on forbids commercial use
(issues 235, 258 and 262 of k2-fsa/OmniVoice). The codec is Boson AI's."""

RELEASES: Mapping[str, Release] = {
    "F5TTS_v1_Base": _official("SWivid/F5-TTS", "F5TTS_v1_Base/model_1250000.safetensors", "F5TTS_v1_Base/vocab.txt"),
    "F5TTS_Base": _official("SWivid/F5-TTS", "F5TTS_Base/model_1200000.safetensors", "F5TTS_Base/vocab.txt"),
    "E2TTS_Base": _official("SWivid/E2-TTS", "E2TTS_Base/model_1200000.safetensors", "F5TTS_Base/vocab.txt"),
    "MegaTTS3": Release(APACHE, _MEGATTS3),
    "CosyVoice2-0.5B": Release(APACHE, _COSYVOICE2),
    "OmniVoice": Release(NON_COMMERCIAL, _OMNIVOICE),
    "Llasa-1B": _llasa("1B", "model.safetensors"),
    "Llasa-3B": _llasa("3B", INDEX),
    "Llasa-8B": _llasa("8B", INDEX),
}
"""The official models by their name in the catalogue. Small files first, so that a wrong address shows at once."""
