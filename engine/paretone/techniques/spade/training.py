"""SPADE's student: the most important layers, trained to replace the removed ones.

All weights train, with a composite loss, on the teacher's own speech, on recordings, or on both. Recovery comes long
before the loss has settled, as the divergence and the share of equal first choices on held-out utterances show.

The loss of the distillation (section 3.2 of the paper) is ``L = α · CE + (1 − α) / 4 · (L_logit + L_latent +
L_attention + L_embedding)`` with α = 0.25. Our choices for what the paper leaves open: the skewed divergence is the
forward one with λ = 0.1, in the cross-entropy form of DistiLLM (the teacher's entropy is not subtracted: another value,
the same gradient); layer outputs are taken before the final norm, attention after the softmax, both at all positions.
Unlike in the paper, errors of layer outputs can be relative to the teacher's mean square: a model with a large residual
stream (the bundled one: mean square of 100 to 5,000) would otherwise only learn to follow the largest channels.

Where tokens are frames of several codes, the first two terms also count the other codes, which a frozen network
completes from the hidden states.

α, λ, the interval and a scale of the attention term are options, and so is the paper's ablation, original layers alone.

Source: "SPADE: Structured Pruning and Adaptive Distillation for Efficient LLM-TTS", arXiv 2509.20802.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from paretone.errors import SettingError
from paretone.measure.evaluation.judges import judge_named
from paretone.models import load_model
from paretone.models.base import Utterance
from paretone.models.catalogue import voices
from paretone.models.families.language import LanguageSpeech
from paretone.models.files.layer_importance import (
    COSINE,
    DIVERGENCE,
    FILE,
    ImportanceRecord,
    read_record,
    require_layers,
)
from paretone.models.files.trained_weights import STUDENTS, places, places_of
from paretone.observer import Passing
from paretone.paths import own_place
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.techniques import spade
from paretone.techniques.base import JobTask
from paretone.techniques.spade.measuring import measure_layers
from paretone.training.companions import Companion, CompanionRecipe, MakeRecipe, train_companion
from paretone.training.learner import Rates
from paretone.training.requests import CompanionRequest, Follower, Trained
from paretone.training.runs import KeptStages, Reporting, use_threads
from paretone.training.session import require_same_choices
from paretone.training.spoken_tokens import TokenBatch
from paretone.training.teachers import Teacher
from paretone.training.token_recipe import (
    Seen,
    TokenData,
    TokenNetwork,
    TokenOptions,
    cross_entropy,
    each_divergence,
    listed,
)
from paretone.wording import percent

_USUAL = spade.Distillation()
ALPHA, SKEW = _USUAL.alpha, _USUAL.skew
OTHERS = 0.3
"""Weight of the other codes of frames, as in Qwen3-TTS's fine-tuning, where a token is the first code of several."""


def skewed_divergence(student: Tensor, teacher: Tensor, skew: float = SKEW) -> Tensor:
    """−Σ p_T log(λ p_T + (1 − λ) p_S), mean over positions; logits (n, V). Source: Ko et al., "DistiLLM" (2024)."""
    wanted = teacher.float().softmax(-1)
    mixed = skew * wanted + (1 - skew) * student.float().softmax(-1)
    return -(wanted * mixed.clamp_min(1e-12).log()).sum(-1).mean()


def target_layers(retained: Sequence[int], layers: int, original: bool = False) -> tuple[int, ...]:
    """The teacher's target layer of each of the student's layers: the one before the next retained layer, so that it
    also replaces all removed layers after it; for the last one, the teacher's last. If ``original``, its own."""
    return tuple(retained) if original else (*(following - 1 for following in retained[1:]), layers - 1)


def latent_loss(
    student: Seen, teacher: Seen, targets: Sequence[int], heard: Tensor | None = None, relative: bool = False
) -> Tensor:
    """Mean squared error of layer outputs, ``heard`` (B, T): not padding; ``relative`` to the teacher's mean square."""
    errors = []
    for layer, target in enumerate(targets):
        wanted = teacher.outputs[target]
        error = _squared_error(student.outputs[layer], wanted, heard)
        errors.append(error / wanted.float().square().mean() if relative else error)
    return torch.stack(errors).mean()


def attention_loss(student: Seen, teacher: Seen, targets: Sequence[int]) -> Tensor:
    """Mean squared error of attention after the softmax, all T · T entries, mean over layers."""
    pairs = ((student.attention[layer], teacher.attention[target]) for layer, target in enumerate(targets))
    return torch.stack([_squared_error(found, wanted, None) for found, wanted in pairs]).mean()


def embedding_loss(student: Seen, teacher: Seen, heard: Tensor | None = None) -> Tensor:
    """Mean squared error of the input embeddings: initially zero, so it only acts as an anchor."""
    return _squared_error(student.embedded, teacher.embedded, heard)


def _squared_error(found: Tensor, wanted: Tensor, heard: Tensor | None) -> Tensor:
    squares = (found.float() - wanted.float()).square()
    return squares.mean() if heard is None else squares[heard].mean()


@dataclass(frozen=True)
class Terms:
    cross_entropy: Tensor
    logits: Tensor
    latent: Tensor
    attention: Tensor
    embedding: Tensor

    def total(self, alpha: float = ALPHA, attention_scale: float = 1.0) -> Tensor:
        distilled = self.logits + self.latent + attention_scale * self.attention + self.embedding
        return alpha * self.cross_entropy + (1 - alpha) / 4 * distilled

    def named(self) -> dict[str, float]:
        return {name: float(value.detach()) for name, value in vars(self).items()}


def composite_loss(
    student: Seen,
    teacher: Seen,
    labels: Tensor,
    targets: Sequence[int],
    heard: Tensor | None = None,
    relative: bool = False,
    skew: float = SKEW,
) -> Terms:
    """All terms. ``labels`` (n,) are the ids spoken at the positions of the logits, ``targets`` are from
    :func:`target_layers`, ``heard`` (B, T) is false in padding, ``relative`` as in :func:`latent_loss`, ``skew`` as in
    :func:`skewed_divergence`. The attention term is zero if attention was not recorded."""
    return Terms(
        cross_entropy(student.logits, labels),
        skewed_divergence(student.logits, teacher.logits, skew),
        latent_loss(student, teacher, targets, heard, relative),
        attention_loss(student, teacher, targets) if student.attention else torch.zeros(()),
        embedding_loss(student, teacher, heard),
    )


@dataclass(frozen=True)
class StudentOptions(spade.Distillation, TokenOptions):
    retained: tuple[int, ...] = ()
    """The teacher's layers that the student starts with."""


class StudentRecipe(CompanionRecipe[TokenNetwork]):
    options: StudentOptions

    name, kind = "spade", "student"

    def __init__(self, teacher: Teacher, data: TokenData, device: torch.device, options: StudentOptions) -> None:
        """Raises :class:`paretone.errors.SettingError` for layers that the teacher lacks."""
        layers = teacher.network.transformer.config.layers
        retained = require_layers(options.retained, layers)
        self._targets = target_layers(retained, layers, options.original_layers)
        torch.manual_seed(options.seed)
        super().__init__(teacher, teacher.network.kept(retained).requires_grad_(True), retained, data, device, options)

    def losses(self, batch: TokenBatch) -> tuple[Tensor, dict[str, float]]:
        options, every = self.options, range(len(self.retained))
        looks = self.steps % options.attention_interval == 0
        with torch.no_grad():
            wanted = self.teacher(batch, outputs=self._targets, attention=self._targets if looks else ())
        found = self.model(batch, outputs=every, attention=every if looks else ())
        spoken = batch.labels[batch.predicting]
        relative, skew = options.relative_latents, options.skew
        terms = composite_loss(found, wanted, spoken, self._targets, batch.heard, relative, skew)
        if len(batch.frames):
            theirs, ours = (self.completed(batch, one) for one in (wanted, found))
            others = cross_entropy(ours, batch.frames[:, 1:].flatten()), skewed_divergence(ours, theirs, skew)
            cross, logits = terms.cross_entropy + OTHERS * others[0], terms.logits + OTHERS * others[1]
            terms = replace(terms, cross_entropy=cross, logits=logits)
        return terms.total(options.alpha, options.attention_scale), terms.named()

    def figures(self, batch: TokenBatch) -> dict[str, Tensor]:
        """``divergence`` from the teacher in nats, and shares of the same first choice and of correct ones."""
        whole, student = self.teacher(batch), self.average.module(batch)
        wanted, found = whole.logits, student.logits
        figures = {
            "divergence": each_divergence(found, wanted),
            "same_first": (found.argmax(-1) == wanted.argmax(-1)).float(),
            "correct": (found.argmax(-1) == batch.labels[batch.predicting]).float(),
        }
        if len(batch.frames):
            theirs, ours = (self.completed(batch, one) for one in (whole, student))
            figures["divergence_of_others"] = each_divergence(ours, theirs)
        return figures

    def metadata_after(self, seconds: float, stage: str = spade.RECOVERED) -> dict[str, str]:
        return {**super().metadata_after(seconds), "stage": stage}

    @property
    def particulars(self) -> dict[str, str]:
        retained, importance = listed(self.retained), self.options.importance
        return {"retained": retained, "importance": importance, **self.options.choices}

    def summary(self, validation: Mapping[str, float]) -> str:
        count = len(self.retained)
        return (
            f"A student with {count} layer{'s' * (count > 1)} ({', '.join(map(str, self.retained))}); on held-out "
            f"speech it agrees with its teacher on {percent(validation['same_first'])} of the tokens, and diverges by "
            f"{validation['divergence']:.3f} nats."
        )

    def state(self) -> dict[str, Any]:
        return {**super().state(), "choices": self.options.choices}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Raises also :class:`TrainingError` if the run was started with other choices."""
        super().restore(state)
        # Earlier runs had only one choice.
        usual = {name: value for name, value in _USUAL.choices.items() if name != "latents"}
        require_same_choices(usual | dict(state.get("choices", {})), self.options.choices)

    def tensors(self) -> Mapping[str, Tensor]:
        return self.average.module.tensors()

    @property
    def file_name(self) -> str:
        options = self.options
        chosen = f"-{options.importance.replace('_', '-')}" if options.importance else ""
        return f"student-{len(self.retained)}{chosen}{'-original-layers' * options.original_layers}.safetensors"


@dataclass(frozen=True)
class Student(Companion):
    kind: ClassVar[str] = STUDENTS
    large_rates: ClassVar[Rates] = Rates(None, 1e-5)
    """AdamW's rate of SPADE's one published reproduction (ml-inory/SPADE)."""
    options: StudentOptions
    depth: int | None = None
    """Number of layers if the options name none; ``None``: the default for the model."""
    stages: tuple[float, ...] = ()
    """Minutes of the budget after which a copy of the student is kept."""
    measured_sentences: int = spade.MEASURED_SENTENCES

    @classmethod
    def of(cls, request: spade.StudentRequest) -> Student:
        options = StudentOptions(**request.token_options, **request.distillation, retained=request.retained)
        return cls(options, request.depth, request.stages, request.measured_sentences)

    def recipe(self, request: CompanionRequest, teacher: Teacher, rates: Rates, follower: Follower) -> MakeRecipe:
        """Raises :class:`SettingError` for layers that the model lacks."""
        options = self.options_at(rates, retained=self._retained(request, teacher, follower))
        return partial(StudentRecipe, teacher, options=options)

    def following(self, recipe: CompanionRecipe, target: Path, work: Path, follower: Follower) -> Follower:
        assert isinstance(recipe, StudentRecipe)

        def save(path: Path, stage: float) -> None:
            recipe.save(path, recipe.metadata_after(60 * stage, f"minutes:{stage:g}"))

        return KeptStages(
            self.stages,
            lambda milestone: milestone.seconds / 60,
            target,
            "minutes",
            save,
            work,
            follower,
        )

    def figures(self, recipe: CompanionRecipe) -> Values:
        return super().figures(recipe).replace(depth=len(recipe.retained), targets=self.options.choices["targets"])

    def _retained(self, request: CompanionRequest, teacher: Teacher, follower: Follower) -> tuple[int, ...]:
        layers, chosen = teacher.network.transformer.config.layers, self.options.importance
        if self.options.retained:
            if chosen:
                raise SettingError("The layers are listed, so no importance selects them; omit one of the two.")
            return require_layers(self.options.retained, layers)
        depth = spade.fitting_depth(layers) if self.depth is None else self.depth
        if not 1 <= depth <= layers:
            raise SettingError(f"{teacher.entry.title} has {layers} layers; keep between 1 and {layers}, not {depth}.")
        found = read_record(places(request.model, teacher.root), teacher.base)
        if not chosen:
            record = found or self._measured(request, teacher, follower, (DIVERGENCE, COSINE))
            return record.retained(depth)
        measure, judge = spade.IMPORTANCE[chosen]
        if judge:  # Before anything is spoken.
            judge_named(judge).ready(["Yes."])
        there = None if found is None else found.measure(measure)
        if found is None or there is None or (judge and (there.judge or spade.WORDS) != judge):
            found = self._measured(request, teacher, follower, (measure,), judge, found)
        return found.published(depth, measure)

    def _measured(
        self,
        request: CompanionRequest,
        teacher: Teacher,
        follower: Follower,
        measures: tuple[str, ...],
        judge: str = "",
        earlier: ImportanceRecord | None = None,
    ) -> ImportanceRecord:
        """Measure the layers, and store the record in the user's folder."""
        follower.status(f"Measuring how much each layer of {teacher.entry.title} matters")
        where = request.folder, "", request.device
        model = load_model(request.model, *where, check=follower.check, vocoder=request.vocoder)
        assert isinstance(model, LanguageSpeech)
        sentences = teacher.sentences(self.measured_sentences)
        speakers = voices(request.model, request.folder)
        utterances = [Utterance(sentence, voice) for sentence in sentences for voice in speakers]
        setting = Setting(request.model, teacher.options(), seed=request.seed)
        observer = Passing(follower, "status", "progress")
        where_kept = Path(request.work)
        record = measure_layers(
            model, utterances, setting, measures, observer, earlier, judge or spade.WORDS, where_kept
        )
        record.write(own_place(request.model) / FILE)
        return record


def importance(task: JobTask) -> spade.LayersMeasured:
    model, request = task.loaded, task.request
    if not isinstance(model, LanguageSpeech):
        raise SettingError(f"{model.info.title} is not a language model: its layers are not measured like this.")
    path = own_place(model.info.id) / FILE
    earlier = read_record(places_of(model.info), model.info.fingerprint)
    given = model, request.utterances, request.setting, request.measures, task.observer
    record = measure_layers(*given, earlier, request.judge, path.parent)
    record.write(path)
    return spade.LayersMeasured(record, str(path))


def train(task: JobTask) -> Trained:
    use_threads(task.request)
    return train_companion(task.request, Student.of(task.request), Reporting(task.observer))
