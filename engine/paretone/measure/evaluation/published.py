"""Judges with figures comparable to published ones: SIM-o, UTMOS22 and Whisper's word errors.

* **SIM-o**: voice similarity by WavLM-large with an ECAPA-TDNN head, fine-tuned for speaker verification. The
  network is that of UniSpeech's ``downstreams/speaker_verification``: 25 weighted hidden states of WavLM, four
  convolutional blocks (Desplanques et al., "ECAPA-TDNN", 2020) and attentive statistics; the checkpoint is
  ``wavlm_large_finetune.pth``. WavLM itself is that of transformers. SIM-o compares the take with the voice's
  original recording ("o" for original), not with its copy by the vocoder.
* **UTMOS22**: naturalness from 1 to 5, predicted by the strong learner of T. Saeki et al., "UTMOS: UTokyo-
  SaruLab system for VoiceMOS Challenge 2022". The network and the checkpoint's names are those of
  tarepan/SpeechMOS, the published strong learner without its phoneme encoder; its wav2vec 2.0 is that of
  transformers.
* **Whisper**: word error rate by Whisper-large-v3, as Seed-TTS's evaluation measures it for English, following
  ``run_wer.py`` of BytedanceSpeech/seed-tts-eval: the model of transformers, single precision, greedy, language set
  to English; texts in lower case, without punctuation except apostrophes. One difference: recordings are
  resampled by our band-limited filter instead of in the Fourier domain. For Chinese texts the language is set to
  Chinese, and the rate is of characters.
* **Paraformer**: character error rate by Paraformer-zh, as Seed-TTS's evaluation measures it for Chinese. One
  difference: width and numbers are normalised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.audio.recording import read_recording
from paretone.audio.resampling import resample
from paretone.errors import AudioError, CheckpointError, TextError
from paretone.measure.evaluation.judges import RATE, Verdict
from paretone.measure.evaluation.transcripts import counted, is_chinese
from paretone.models.base import Voice
from paretone.models.files.checkpoints import load_strictly, read_checkpoint, read_weights
from paretone.models.networks.layers import Residual, chained
from paretone.models.networks.shapes import Modules
from paretone.reading import readable, shown
from paretone.wording import beyond

# --- Speaker similarity -----------------------------------------------------------------------------------------------
SPEAKER_FILE = "wavlm_large_finetune.pth"
_WAVLM = "feature_extract.model."
BOTTLENECK = 128
_TRAINING_ONLY = "loss_calculator."
LARGE = {"feat_extract_norm": "layer", "do_stable_layer_norm": True}
LARGE |= {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
"""Configuration of WavLM-large, as differences from transformers' defaults (WavLM-base)."""


def load_similarity(texts: Sequence[str], folder: Path, device: str) -> SimilarityJudge:
    return SimilarityJudge(read_speaker_network(folder / SPEAKER_FILE, LARGE).to(device), device)


def _convolution(inputs: int, outputs: int, size: int = 1, padding: int = 0) -> nn.Sequential:
    return chained(conv=nn.Conv1d(inputs, outputs, size, padding=padding), relu=nn.ReLU(), bn=nn.BatchNorm1d(outputs))


class _Scales(nn.Module):
    """Channels in eight parts, each convolved after adding the previous part's output (Res2Net)."""

    PARTS = 8

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        width = channels // self.PARTS
        convolutions = (nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation) for _ in range(self.PARTS - 1))
        self.convs = Modules(convolutions)
        self.bns = Modules(nn.BatchNorm1d(width) for _ in range(self.PARTS - 1))

    def forward(self, x: Tensor) -> Tensor:
        *parts, last = x.chunk(self.PARTS, 1)
        found: list[Tensor] = []
        for part, convolution, norm in zip(parts, self.convs, self.bns, strict=True):
            found.append(norm(functional.relu(convolution(part if not found else found[-1] + part))))
        return torch.cat([*found, last], 1)


class _Gate(nn.Module):
    """Squeeze and excitation: channels weighted by their mean over time."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(channels, BOTTLENECK), nn.Linear(BOTTLENECK, channels)

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.sigmoid(self.linear2(functional.relu(self.linear1(x.mean(2)))))
        return x * weights[:, :, None]


class _Block(Residual):
    """One of the three middle blocks; names as in the checkpoint."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.Conv1dReluBn1 = _convolution(channels, channels)
        self.Res2Conv1dReluBn = _Scales(channels, dilation)
        self.Conv1dReluBn2 = _convolution(channels, channels)
        self.SE_Connect = _Gate(channels)


class _Statistics(nn.Module):
    """Attention-weighted mean and standard deviation over time."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Conv1d(channels, BOTTLENECK, 1), nn.Conv1d(BOTTLENECK, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.softmax(self.linear2(torch.tanh(self.linear1(x))), dim=2)
        mean = (weights * x).sum(2)
        variance = (weights * x**2).sum(2) - mean**2
        return torch.cat([mean, variance.clamp(min=1e-9).sqrt()], 1)


class SpeakerNetwork(nn.Module):
    def __init__(self, config: Mapping[str, Any], channels: int = 512, pooled: int = 1536, size: int = 256) -> None:
        super().__init__()
        from transformers import WavLMConfig, WavLMModel

        self.wavlm = WavLMModel(WavLMConfig(**config))
        width = self.wavlm.config.hidden_size
        self.feature_weight = nn.Parameter(torch.zeros(self.wavlm.config.num_hidden_layers + 1))
        self.layer1 = _convolution(width, channels, 5, padding=2)
        self.layer2, self.layer3, self.layer4 = (_Block(channels, dilation) for dilation in (2, 3, 4))
        self.conv = nn.Conv1d(3 * channels, pooled, 1)
        self.pooling = _Statistics(pooled)
        self.bn = nn.BatchNorm1d(2 * pooled)
        self.linear = nn.Linear(2 * pooled, size)

    def forward(self, samples: Tensor) -> Tensor:
        """(B, n) at 16 kHz to (B, size)."""
        samples = functional.layer_norm(samples, samples.shape[-1:])
        found = self.wavlm(samples, output_hidden_states=True)
        # Each layer's input, then the output after the last norm, as in s3prl. Versions of transformers differ on
        # whether their last hidden state is taken before or after that norm.
        states = torch.stack([*found.hidden_states[:-1], found.last_hidden_state])
        weights = torch.softmax(self.feature_weight, 0)[:, None, None, None]
        x = functional.instance_norm((weights * states).sum(0).transpose(1, 2) + 1e-6)
        second = self.layer2(self.layer1(x))
        third = self.layer3(second)
        together = torch.cat([second, third, self.layer4(third)], 1)
        return self.linear(self.bn(self.pooling(functional.relu(self.conv(together)))))


def read_speaker_network(path: Path, config: Mapping[str, Any], **sizes: int) -> SpeakerNetwork:
    """Network with the weights at ``path``. Raises :class:`CheckpointError` with missing and unknown names."""
    weights = read_checkpoint(path)
    weights = weights.get("model", weights)
    network = SpeakerNetwork(config, **sizes).eval()
    backbone = _backbone(network.wavlm, "wavlm.", "WavLM", weights, _WAVLM, path)
    head = {name: value for name, value in weights.items() if not name.startswith((_WAVLM, _TRAINING_ONLY))}
    load_strictly(network, {**head, **backbone}, str(path))
    return network


class SimilarityJudge:
    """The network, and cached embeddings of the voices."""

    def __init__(self, network: SpeakerNetwork, device: str) -> None:
        self._network, self._device = network.eval(), device
        self._voices: dict[str, Tensor] = {}

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Cosine between the embeddings of a take and of its voice's recording."""
        if not voice.audio:
            raise AudioError(f"{voice.title} is a voice of the model's own: there is no recording to compare with.")
        if voice.audio not in self._voices:
            recording = read_recording(voice.audio)
            self._voices[voice.audio] = self._embedded(recording.samples, recording.sample_rate)
        cosine = functional.cosine_similarity(self._embedded(samples, rate), self._voices[voice.audio])
        return Verdict("similarity", {"similarity": float(cosine)})

    @torch.inference_mode()
    def _embedded(self, samples: np.ndarray, rate: int) -> Tensor:
        return self._network(torch.from_numpy(resample(samples, rate, RATE))[None].to(self._device))


# --- Naturalness ------------------------------------------------------------------------------------------------------
UTMOS_FILE = "utmos22_strong_step7459_v1.pt"
_WAV2VEC = "wav2vec2."


def load_utmos(texts: Sequence[str], folder: Path, device: str) -> UtmosJudge:
    return UtmosJudge(read_utmos_network(folder / UTMOS_FILE).to(device), device)


class UtmosNetwork(nn.Module):
    def __init__(
        self, config: Mapping[str, Any], listener: int = 128, hidden: int = 512, projected: int = 2048
    ) -> None:
        super().__init__()
        from transformers import Wav2Vec2Config, Wav2Vec2Model

        self.wav2vec2 = Wav2Vec2Model(Wav2Vec2Config(**config))
        width = self.wav2vec2.config.hidden_size
        self.domain_emb = nn.Parameter(torch.zeros(1, listener))
        self.judge_emb = nn.Parameter(torch.zeros(1, listener))
        self.blstm = nn.LSTM(width + 2 * listener, hidden, batch_first=True, bidirectional=True)
        self.projection = nn.Sequential(nn.Linear(2 * hidden, projected), nn.ReLU(), nn.Linear(projected, 1))

    def forward(self, samples: Tensor) -> Tensor:
        """(B, n) at 16 kHz to (B,)."""
        states = self.wav2vec2(samples).last_hidden_state
        listener = torch.cat([self.domain_emb, self.judge_emb], 1)[:, None].expand(*states.shape[:2], -1)
        scores = self.projection(self.blstm(torch.cat([states, listener], 2))[0])
        # Trained on scores scaled to -1 to 1.
        return scores.mean(1).squeeze(1) * 2 + 3


def read_utmos_network(path: Path, config: Mapping[str, Any] | None = None, **sizes: int) -> UtmosNetwork:
    """Network with the weights at ``path``. Raises :class:`CheckpointError` with missing and unknown names."""
    weights = read_weights(path)
    network = UtmosNetwork(config or {}, **sizes).eval()
    backbone = _backbone(network.wav2vec2, _WAV2VEC, "wav2vec 2.0", weights, _WAV2VEC, path)
    head = {name: value for name, value in weights.items() if not name.startswith(_WAV2VEC)}
    load_strictly(network, {**head, **backbone}, str(path))
    return network


class UtmosJudge:
    def __init__(self, network: UtmosNetwork, device: str) -> None:
        self._network, self._device = network.eval(), device

    @torch.inference_mode()
    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        heard = torch.from_numpy(resample(samples, rate, RATE))[None].to(self._device)
        return Verdict("utmos", {"utmos": float(self._network(heard)[0])})


# --- Names of weights -------------------------------------------------------------------------------------------------
# WavLM and wav2vec 2.0: names in fairseq, UniSpeech and s3prl, and in transformers.
_LAYER = {
    "self_attn.relative_attention_bias": "attention.rel_attn_embed",
    "self_attn.grep_a": "attention.gru_rel_pos_const",
    "self_attn.grep_linear": "attention.gru_rel_pos_linear",
    "self_attn_layer_norm": "layer_norm",
    "self_attn": "attention",
    "fc1": "feed_forward.intermediate_dense",
    "fc2": "feed_forward.output_dense",
    "final_layer_norm": "final_layer_norm",
}
_WHOLE = {
    "mask_emb": "masked_spec_embed",
    "layer_norm": "feature_projection.layer_norm",
    "post_extract_proj": "feature_projection.projection",
    "encoder.layer_norm": "encoder.layer_norm",
    "encoder.pos_conv.0.weight_g": "encoder.pos_conv_embed.conv.parametrizations.weight.original0",
    "encoder.pos_conv.0.weight_v": "encoder.pos_conv_embed.conv.parametrizations.weight.original1",
    "encoder.pos_conv.0": "encoder.pos_conv_embed.conv",
}


def renamed(name: str) -> str:
    """Name in transformers of the weight called ``name`` elsewhere. Raises :class:`KeyError`."""
    if found := re.fullmatch(r"feature_extractor\.conv_layers\.(\d+)\.0\.(weight|bias)", name):
        return f"feature_extractor.conv_layers.{found[1]}.conv.{found[2]}"
    # A group norm is the third of four modules; a layer norm is inside a separate module.
    if found := re.fullmatch(r"feature_extractor\.conv_layers\.(\d+)\.2\.(?:1\.)?(weight|bias)", name):
        return f"feature_extractor.conv_layers.{found[1]}.layer_norm.{found[2]}"
    if found := re.fullmatch(r"(encoder\.layers\.\d+)\.(.+)", name):
        return f"{found[1]}.{_replaced(found[2], _LAYER)}"
    return _replaced(name, _WHOLE)


def _replaced(name: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        if name == old or name.startswith(f"{old}."):
            return new + name[len(old) :]
    raise KeyError(name)


def _backbone(
    network: nn.Module, name: str, title: str, weights: Mapping[str, Tensor], prefix: str, path: Path
) -> dict[str, Tensor]:
    """Weights of the part ``name`` of a network, from those of ``path`` whose names begin with ``prefix``."""
    try:
        found = {renamed(one.removeprefix(prefix)): weights[one] for one in weights if one.startswith(prefix)}
    except KeyError as error:
        raise CheckpointError(f"{path} has a weight that is not in {title}: {error.args[0]}.") from error
    if "masked_spec_embed" not in network.state_dict():
        found.pop("masked_spec_embed", None)
    return {f"{name}{inner}": value for inner, value in found.items()}


# --- Words ------------------------------------------------------------------------------------------------------------
LONGEST_SECONDS = 30.0
"""Whisper's window in seconds; of longer recordings it would hear only the first half minute."""


class WhisperJudge:
    """Loaded Whisper. Raises :class:`CheckpointError` for unusable files."""

    def __init__(self, texts: Sequence[str], folder: Path, device: str) -> None:
        from transformers import WhisperForConditionalGeneration, WhisperProcessor

        self._device = device
        problem = f"Whisper could not be loaded from {folder}"
        with readable(CheckpointError, problem, "get its files again", RuntimeError):
            self._processor = WhisperProcessor.from_pretrained(folder, local_files_only=True)
            model: Any = WhisperForConditionalGeneration.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, dtype=torch.float32
            )
        # Any: transformers' types lack calling, moving and generating.
        self._model: Any = model.to(device).eval()

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Errors in a recording of ``text``, which is in English or Chinese. Raises :class:`AudioError` for a recording
        longer than Whisper's window."""
        if len(samples) > LONGEST_SECONDS * rate:
            raise AudioError(
                f"The recording lasts {beyond(len(samples) / rate)}, and Whisper hears {LONGEST_SECONDS:.0f} s at "
                "once; judge shorter sentences."
            )
        heard = self._transcribed(resample(samples, rate, RATE), "zh" if is_chinese(text) else "en")
        return counted("whisper", text, heard)

    @torch.inference_mode()
    def _transcribed(self, samples: np.ndarray, language: str) -> str:
        given = self._processor(samples, sampling_rate=RATE, return_tensors="pt", return_attention_mask=True)
        features = given.input_features.to(self._device, self._model.dtype)
        tokens = self._model.generate(
            features, attention_mask=given.attention_mask.to(self._device), language=language, task="transcribe"
        )
        return self._processor.batch_decode(tokens, skip_special_tokens=True)[0]


class ParaformerJudge:
    """Paraformer-zh of funasr, for Mandarin as in Seed-TTS's evaluation. Raises :class:`CheckpointError`."""

    def __init__(self, texts: Sequence[str], folder: Path, device: str) -> None:
        from funasr import AutoModel

        with readable(CheckpointError, f"Paraformer could not be loaded from {folder}", "", Exception):
            self._model: Any = AutoModel(model=str(folder), device=device, disable_update=True, disable_pbar=True)

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Errors in a recording of the Chinese ``text``. Raises :class:`TextError` for another language."""
        if not is_chinese(text):
            raise TextError(f"Paraformer hears Chinese only, and {shown(text)} is not; use whisper.")
        found = self._model.generate(input=resample(samples, rate, RATE), batch_size_s=300)
        return counted("paraformer", text, str(found[0]["text"]) if found else "")
