"""Small speech language models with a student and a draft, their profiles, exports of these, and what they say."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from paretone.export.targets import export
from paretone.models import catalogue, load_model
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.language_network import TokenModel
from paretone.models.files.checkpoints import fingerprint, metadata_of
from paretone.observer import Observer
from paretone.sampling.autoregressive import Request, after_prompt, decode
from paretone.sampling.tokens import Greedy
from paretone.setting.knobs import Values
from paretone.setting.profile import Evidence, Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.techniques import resolve, spade, speculative
from tests.engine.models.cosyvoice2 import small_release as cosy_release
from tests.engine.models.llasa import small_release as llasa_release
from tests.engine.small_language import write_draft, write_model, write_student

CLEAR = 1e-4
TEXT = "Rain comes tomorrow."
LM_MINI, LLASA, COSYVOICE = NAMES = ("lm-mini", "Llasa-1B", "CosyVoice2-0.5B")
OPTIONS: dict[str, dict[str, object]] = {LM_MINI: {"speed": 2.0}, LLASA: {"clone": False}, COSYVOICE: {}}
"""Options under which they speak quickly, and of nobody's recording where that can be."""


def with_companions(model: str, root: Path) -> Path:
    """A small release in ``root``, with a student and a draft as a training writes them."""
    if model == LLASA:
        llasa_release.write_language_model(root)
        weights, layer, head = llasa_release.student_tensors((0, 2)), "model.layers.0.", "lm_head.weight"
        base = fingerprint(root / "model.safetensors")
    else:
        cosy_release.write_release(root)
        weights = cosy_release.language_weights(layers=2)
        layer, head = "llm.model.model.layers.0.", "llm_decoder.weight"
        weights.pop("llm.model.lm_head.weight")
        base = fingerprint(root / "llm.pt")
    trained = {name: value.clone() for name, value in weights.items() if name.startswith(layer) or name == head}
    said = {"base": base, "retained": "[0, 2]", "stage": "recovered", "minutes": "3", "trained": "[0]", "head": "true"}
    for kind, tensors in (("student", weights), ("draft", trained)):
        (root / f"{kind}s").mkdir()
        save_file(tensors, root / f"{kind}s" / f"{kind}.safetensors", {"kind": kind, **said})
    return root


def write_small(model: str, root: Path) -> Path:
    """The small ``model`` in a folder in ``root``, complete: it can be loaded and has a student and a draft."""
    if model == LM_MINI:
        write_model(root / model)
        write_student(root / model)
        write_draft(root / model, lambda weight: weight * 1.01)
        return root / model
    pytest.importorskip("tokenizers")
    if model == LLASA:
        llasa_release.write_original_codec(root / "xcodec2")
    else:
        for package in ("onnx", "onnxruntime"):
            pytest.importorskip(package)
    folder = with_companions(model, root / model)
    if model == LLASA:  # A head that is not the embedding: with that, random weights say one token for ever.
        head = torch.zeros(llasa_release.ROWS, llasa_release.CONFIG["hidden_size"])
        spoken = torch.randn(len(llasa_release.LOCAL), head.shape[1], generator=torch.Generator().manual_seed(5))
        head[llasa_release.LOCAL] = spoken
        for path in folder.glob("*s/*.safetensors"):
            save_file(load_file(path) | {"lm_head.weight": head.half()}, path, metadata_of(path))
    return folder


class Clear(Greedy):
    """The most likely id, which has to be so by far more than processors and programs differ by."""

    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        first, second = logits[-1].topk(2).values.tolist()
        assert first - second > CLEAR
        return super().probabilities(logits, history)


@dataclass(frozen=True)
class Exported:
    """A model, a profile of it, and what exports of it are to say."""

    root: Path
    speech: LanguageSpeech
    profile: Profile

    def to(self, target: str, folder: Path) -> Path:
        export(self.profile, target, folder, Observer(), str(self.root))
        return folder

    def greedy(self) -> list[list[int]]:
        """The most likely tokens that the profile's model speaks :data:`TEXT` with, passage by passage."""
        found = []
        for model, request in self._requests():
            cycles = decode(model, request, Clear(), lambda: 0.0)
            found.append([token for cycle in cycles for token in cycle.tokens])
        return found

    def spoken(self) -> list[int]:
        """The tokens that Paretone speaks :data:`TEXT` with under the profile."""
        voice = catalogue.voice("", self.profile.setting.model, str(self.root))
        said = synthesise(self.speech, TEXT, voice, self.profile.setting)
        assert said.trace.decoding is not None
        return list(said.trace.decoding.tokens)

    def scores(self, tokens: Sequence[int]) -> Tensor:
        """Scores of the profile's model after the first prompt and each of ``tokens``, (tokens + 1, codes + stops)."""
        model, request = self._requests()[0]
        return after_prompt(model, request, len(tokens)).logits(tokens, len(tokens) + 1)

    def _requests(self) -> list[tuple[TokenModel, Request]]:
        speech, setting = self.speech, self.profile.setting
        plan = resolve(speech.info, setting)
        target = speech.networks(plan).target
        voice = catalogue.voice("", setting.model, str(self.root))
        prompt, text = speech.prepare(TEXT, voice, plan.options, lambda: None, setting.seed)
        found = []
        for passage in text.passages:
            request = speech.request(target, passage, prompt, plan.options)
            target.tokens.reach(request.first_position + request.maximum)
            found.append((target.tokens, request))
        return found


def student() -> UsedTechnique:
    return UsedTechnique(spade.NAME, Values({"depth": 2}))


def drafted(**knobs: object) -> UsedTechnique:
    return UsedTechnique(speculative.NAME, Values({"adaptive": False, **knobs}))


def exported(root: Path, model: str, *techniques: UsedTechnique, **options: object) -> Exported:
    """The model in ``root``, with a profile of these techniques and options."""
    speech = load_model(model, folder=str(root), device="cpu")
    assert isinstance(speech, LanguageSpeech)
    setting = Setting(model, catalogue.entry(model).options_with(**{**OPTIONS[model], **options}), seed=3)
    for one in techniques:
        setting = setting.with_technique(one)
    return Exported(root, speech, Profile.of(setting, speech.info, evidence=Evidence(seed=3, text=TEXT)))
