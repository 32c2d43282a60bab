"""Parts of a language model's export: the model, the draft, and prompts as ids.

Tensors are named as in the transformers class of the architecture, Llama or Qwen2, in one vocabulary. CosyVoice 2's
separate tables of text, marks and speech are joined, as in training. Its head scores speech only: rows of text are
zero. The bias of its scores, which these classes lack, is stored separately.
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paretone.errors import AudioError, CheckpointError, ProfileError
from paretone.export.delivery import Content
from paretone.export.exported_weights import safetensors_file
from paretone.export.language import (
    CONFIG,
    HEAD,
    WEIGHTS,
    CosySource,
    HuggingFaceSource,
    Source,
    shallower,
    source_of,
    tensors_of,
)
from paretone.export.targets import Order, json_file
from paretone.models import load_model
from paretone.models.base import FeatureDraftWeights, OfficialIds, OfficialPrompt, StudentWeights, Voice
from paretone.models.catalogue import entry
from paretone.models.catalogue import voice as catalogue_voice
from paretone.models.cosyvoice2.language_model import TEXT, CosyNames, TableLayout
from paretone.models.families.language import LanguageSpeech
from paretone.models.files.layer_importance import pruned
from paretone.setting.plan import LanguagePlan
from paretone.setting.profile import Profile
from paretone.techniques import resolve

EMBEDDING, BODY = "model.embed_tokens.weight", "model."
CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}
"""transformers classes by ``model_type``."""


@dataclass(frozen=True)
class CausalModel:
    config: Mapping[str, Any]
    """Content of ``config.json``."""
    tensors: Mapping[str, Tensor] = field(repr=False)
    """Tensors by the names of the class; without ``lm_head.weight`` if that is the embedding."""
    ids: OfficialIds
    bias: Tensor | None = field(default=None, repr=False)
    """(codes + stops,), added to the scores of :attr:`OfficialIds.spoken`."""

    @property
    def head(self) -> Tensor:
        """(ids, hidden)."""
        return self.tensors.get(HEAD, self.tensors[EMBEDDING])


def causal_model(
    source: Source, tensors: Mapping[str, Tensor], retained: Sequence[int], ids: OfficialIds
) -> CausalModel:
    """Model with the ``tensors`` of a checkpoint, student or draft of ``source``, by official names and numbered
    without gaps; ``retained`` are the original numbers of its layers. Raises :class:`CheckpointError`."""
    if isinstance(source, CosySource):
        parts = CosyNames(len(tensors[TEXT]), source.edition.layout).parts(tensors)
        unspoken = parts.head.new_zeros(ids.first_code, parts.head.shape[1])
        named = {BODY + name: value for name, value in parts.transformer.items()}
        named |= {EMBEDDING: parts.embedding, HEAD: torch.cat([unspoken, parts.head])}
        made = CausalModel({**source.config.entries, "tie_word_embeddings": False}, named, ids, parts.bias)
    elif isinstance(source, HuggingFaceSource):
        made = CausalModel({**source.config.entries, "tie_word_embeddings": HEAD not in tensors}, tensors, ids)
    else:
        raise CheckpointError(f"{source.root} holds a model that no class of transformers has.")
    config = shallower(made.config, retained)
    config.pop("torch_dtype", None)
    types = {value.dtype for value in made.tensors.values()}
    config |= {
        "architectures": [CLASSES[str(config["model_type"])]],
        "vocab_size": len(made.tensors[EMBEDDING]),
        "dtype": str(types.pop() if len(types) == 1 else torch.float32).removeprefix("torch."),
        "bos_token_id": None,
        "eos_token_id": list(ids.stops),
        "pad_token_id": ids.stops[0],
    }
    return replace(made, config=config, tensors={name: value.contiguous() for name, value in made.tensors.items()})


GENERATION = "generation_config.json"


def model_folder(model: CausalModel, generation: Mapping[str, Any]) -> dict[str, Content]:
    """Files of ``model`` by name, including ``generation_config.json``."""
    return {
        CONFIG: json_file(model.config),
        GENERATION: json_file(generation),
        WEIGHTS: safetensors_file(model.tensors, {"format": "pt"}),
    }


TOKENIZER = "tokenizer.json"
TOKENIZER_FILES = TOKENIZER, "tokenizer_config.json", "special_tokens_map.json"
MARK_NAMES = "<|sos|>", "<|task|>"
STOPS = "<|end_of_speech|>", "<|unused_stop|>", "<|more_text|>"
"""Token names for the entries of CosyVoice 2's separate tables."""


def token_names(layout: TableLayout) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the marks in a table of their own, and of the rows of speech after the codes."""
    if layout.marks is None:
        return MARK_NAMES, STOPS
    known = dict(zip(layout.marks, MARK_NAMES, strict=True)) | {layout.end: STOPS[0], layout.end + 2: STOPS[2]}
    return (), tuple(known.get(row, f"<|unused_stop_{row}|>") for row in range(layout.stops))


SENTENCE = "The birch canoe slid on the smooth planks."
"""Sentence for profiles without a measured text."""


@dataclass(frozen=True)
class LanguageBundle:
    model: CausalModel
    draft: CausalModel | None
    """Draft, if the target takes one and the profile has one."""
    prompts: tuple[OfficialPrompt, ...]
    """Passages of the sentence that the profile was measured with."""
    voice: Voice
    tokenizer: Mapping[str, bytes] = field(repr=False)
    """Files of the tokenizer by name; empty if the model reads phones."""
    speaks: str
    """Description of the model."""
    drafts: str
    """The draft in words, or ``""``."""


def language_bundle(order: Order) -> LanguageBundle:
    """Bundle for ``order``. Raises :class:`paretone.errors.PlainError`."""
    profile, follower = order.profile, order.follower
    ids, plan, prompts, voice, root = _prepared(order)
    source = source_of(entry(profile.setting.model), str(root), follower.check)
    follower.status("Reading the weights …")
    model, speaks = _target(source, plan, ids)
    given = plan.draft if "draft" in order.account.given else None
    assert not isinstance(given, FeatureDraftWeights)
    draft, drafts = None, ""
    if given is not None:
        draft = causal_model(source, tensors_of(source, given), given.retained, ids)
        drafts = f"{'a student, ' if isinstance(given, StudentWeights) else ''}{len(given.retained)} layers"
    return LanguageBundle(model, draft, prompts, voice, tokenizer_files(source, ids), speaks, drafts)


def _prepared(order: Order) -> tuple[OfficialIds, LanguagePlan, tuple[OfficialPrompt, ...], Voice, Path]:
    """Load the model for the profile's ids, plan, prompts, voice and folder."""
    profile, follower = order.profile, order.follower
    folder = order.model_folder
    speech = load_model(
        profile.setting.model,
        folder=folder,
        variant=profile.named_variant,
        device="cpu",
        status=follower.status,
        check=follower.check,
    )
    if not isinstance(speech, LanguageSpeech):
        raise ProfileError(f"{speech.info.title} decodes no tokens; choose a profile of a speech language model.")
    carried = _carried(profile, {one.technique for one in order.account.techniques})
    carried.check(speech.info)
    setting = carried.setting
    plan = resolve(speech.info, setting, carried.artefacts)
    if isinstance(plan.draft, FeatureDraftWeights):
        # Other programs cannot run it.
        plan = replace(plan, draft=next(iter(speech.info.drafts), None))
    try:
        voice = profile.voice(folder)
    except AudioError:  # A user's recording that is not here.
        voice = catalogue_voice("", profile.setting.model, folder)
    text = profile.evidence.text or SENTENCE
    follower.status("Encoding the voice …")
    prompts = speech.official_prompts(text, voice, plan, follower.check)
    checkpoint = Path(speech.info.checkpoint)
    root = checkpoint if checkpoint.is_dir() else checkpoint.parent
    ids = speech.official_ids
    del speech
    gc.collect()  # Before reading the weights again.
    return ids, plan, prompts, voice, root


def _carried(profile: Profile, kept: Collection[str]) -> Profile:
    """``profile`` with only the techniques ``kept``: the dropped ones need not run here."""
    setting = profile.setting
    for used in setting.techniques:
        if used.technique not in kept:
            setting = setting.without(used.technique)
    named = {one.artefact for one in setting.techniques}
    artefacts = tuple(one for one in profile.artefacts if one.fingerprint in named)
    return replace(profile, setting=setting, artefacts=artefacts)


def _target(source: Source, plan: LanguagePlan, ids: OfficialIds) -> tuple[CausalModel, str]:
    layers = source.config.number("num_hidden_layers")
    if isinstance(plan.weights, StudentWeights):
        student = plan.weights
        model = causal_model(source, tensors_of(source, student), student.retained, ids)
        return model, f"a student with {student.depth} of {layers} layers"
    retained = plan.layers or tuple(range(layers))
    model = causal_model(source, pruned(source.weights(), retained), retained, ids)
    return model, f"the model with {len(retained)} of its {layers} layers" if plan.layers else "the model itself"


def tokenizer_files(source: Source, ids: OfficialIds) -> dict[str, bytes]:
    """Files of the tokenizer of ``source`` by name, in the vocabulary ``ids``. Raises
    :class:`paretone.errors.CheckpointError`."""
    if not isinstance(source, CosySource):
        assert isinstance(source, HuggingFaceSource)
        return {name: content for name, content in source.companion_files().items() if name in TOKENIZER_FILES}
    speech = [f"<|s_{number}|>" for number in range(ids.codes)]
    marks, stops = token_names(source.edition.layout)
    joined = source.parts.tokenizer().joined(ids.first_code - len(marks), marks, speech, stops[: len(ids.stops)])
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    return {TOKENIZER: joined.encode(), "tokenizer_config.json": json_file(config)}
