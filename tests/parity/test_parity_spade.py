"""SPADE on a small CosyVoice 2 against a reference derived from the paper, as there is no official code."""

import functools

import pytest
import torch
from torch import Tensor
from torch.nn.functional import embedding

from paretone.models.cosyvoice2.language_model import CosyNames, LanguageModel
from paretone.models.families.language_network import IGNORED
from paretone.models.files.layer_importance import WORD_ERROR, ImportanceRecord, LayerImportance, pruned
from paretone.models.networks.causal import CausalConfig
from paretone.techniques.spade.training import (
    attention_loss,
    composite_loss,
    embedding_loss,
    latent_loss,
    skewed_divergence,
    target_layers,
)
from paretone.training.spoken_tokens import collate_rows
from paretone.training.token_recipe import Seen, cross_entropy, divergence
from tests.parity.fixtures import Fixture, assert_close, fixtures

TOLERANCE = 1e-5
SEEN = 1e-4
references = pytest.mark.parametrize("fixture", fixtures("ar", lambda said: "target_layer_per_student_layer" in said))


def recorded(fixture: Fixture) -> tuple[Seen, Seen, Tensor]:
    """The fixture's outputs of student and teacher, and the labels at the positions that predict."""
    said, labels = fixture.description, fixture["labels"][0]
    predicting = labels != IGNORED

    def seen(who: str, layers: list[int]) -> Seen:
        outputs = {layer: fixture[f"{who}_latent_{layer}"] for layer in layers}
        attention = {layer: fixture[f"{who}_attention_{layer}"] for layer in layers}
        return Seen(fixture[f"{who}_logits"][predicting], torch.zeros(1), outputs, attention)

    student = seen("student", list(range(len(said["retained"]))))
    return student, seen("teacher", said["target_layer_per_student_layer"]), labels[predicting]


@references
def test_parity_spade_terms(fixture: Fixture) -> None:
    expected = fixture.description["losses"]
    targets = fixture.description["target_layer_per_student_layer"]
    student, teacher, labels = recorded(fixture)
    heard = (fixture["labels"] != IGNORED)[0]
    found = {
        "ce": cross_entropy(student.logits, labels),
        "skew_forward_kl_lam01": skewed_divergence(student.logits, teacher.logits),
        "forward_kl": divergence(student.logits, teacher.logits),
        "latent_mse": latent_loss(student, teacher, targets),
        "latent_mse_label_positions": latent_loss(student, teacher, targets, heard),
        "attention_mse": attention_loss(student, teacher, targets),
    }
    # The fixture's plain divergence lacks the teacher's entropy, too.
    entropy = -(teacher.logits.softmax(-1) * teacher.logits.log_softmax(-1)).sum(-1).mean()
    found["forward_kl"] = found["forward_kl"] + entropy
    for name, value in found.items():
        assert_close(value, torch.tensor(expected[name]), TOLERANCE, name)
    skewed = skewed_divergence(student.logits, teacher.logits) - entropy
    assert_close(skewed, torch.tensor(expected["true_skew_kl_lam01"]), TOLERANCE, "skewed divergence itself")


@functools.cache
def models(fixture: Fixture) -> tuple[LanguageModel, LanguageModel]:
    """Student and teacher."""
    other = fixture.beside("cosyvoice2_lm")
    retained = fixture.description["retained"]

    def model(weights: dict[str, Tensor], layers: int) -> LanguageModel:
        # The fixtures leave out the head that is tied to the text's table.
        weights.setdefault("llm.model.lm_head.weight", weights["llm.model.model.embed_tokens.weight"])
        config = CausalConfig.read({**other.description["qwen2_config"], "num_hidden_layers": layers})
        return LanguageModel.from_official(weights, config, fixture.name)

    layers = fixture.description["teacher_layers"]
    return model(dict(fixture.weights), len(retained)), model(dict(other.weights), layers)


def sequence(fixture: Fixture, model: LanguageModel) -> tuple[Tensor, Tensor]:
    """The fixture's sequence as ``model`` is trained on it, embedded, and the labels."""
    names = CosyNames(len(model.text))
    batch = collate_rows([names.row(fixture["text"][0].tolist(), fixture["speech"][0].tolist(), model.codes)])
    return embedding(batch.ids[0], torch.cat([model.text, model.marks, model.tokens.embedding])), batch.labels[0]


def looked_at(fixture: Fixture, model: LanguageModel) -> tuple[Seen, Tensor]:
    """Output of ``model`` for the fixture's sequence, and the labels."""
    embedded, labels = sequence(fixture, model)
    found: dict[str, dict[int, Tensor]] = {"output": {}, "attention": {}}
    hidden = model.tokens.transformer(
        embedded[None], probe=lambda layer, what, value: found[what].update({layer: value[0]}), attention=True
    )
    predicting = fixture["labels"][0] != IGNORED
    assert labels[predicting].tolist() == fixture["labels"][0][predicting].tolist()
    logits = model.tokens.logits(hidden[0])[predicting]
    return Seen(logits, embedded, found["output"], found["attention"]), labels[predicting]


@references
@torch.inference_mode()
def test_parity_spade_models_and_total(fixture: Fixture) -> None:
    expected, retained = fixture.description["losses"], fixture.description["retained"]
    (student, labels), (teacher, _) = (looked_at(fixture, model) for model in models(fixture))
    targets = target_layers(retained, fixture.description["teacher_layers"])
    assert list(targets) == fixture.description["target_layer_per_student_layer"]
    for layer, target in enumerate(targets):
        for who, seen, number in (("student", student, layer), ("teacher", teacher, target)):
            assert_close(seen.outputs[number], fixture[f"{who}_latent_{number}"], SEEN, f"{who} output {number}")
            assert_close(seen.attention[number], fixture[f"{who}_attention_{number}"], SEEN, f"{who} attention")
    assert_close(embedding_loss(student, teacher), torch.tensor(expected["embedding_mse"]), TOLERANCE, "embedding")
    same = latent_loss(student, teacher, retained)
    assert_close(same, torch.tensor(expected["latent_mse_same_layer"]), TOLERANCE, "latent, own layers")
    total = composite_loss(student, teacher, labels, targets).total()
    assert_close(total, torch.tensor(expected["total_alpha025"]), TOLERANCE, "total")


@references
def test_parity_spade_target_layers(fixture: Fixture) -> None:
    for case in fixture.description["target_maps"]:
        assert list(target_layers(case["keep"], case["L"])) == case["targets"]


@references
def test_parity_spade_selection(fixture: Fixture) -> None:
    for case in fixture.description["selection"]["cases"]:
        measured = LayerImportance(WORD_ERROR, tuple(case["wli"]))
        record = ImportanceRecord("lm-mini", "", len(case["wli"]), (measured,))
        assert list(record.retained(case["n_keep"])) == case["keep"]


@references
@torch.inference_mode()
def test_parity_spade_removed_layers_are_renumbered(fixture: Fixture) -> None:
    """A checkpoint without some layers speaks as the whole one with these left out."""
    _, teacher = models(fixture)
    other, retained = fixture.beside("cosyvoice2_lm"), fixture.description["retained"]
    left_out = frozenset(range(fixture.description["teacher_layers"])) - frozenset(retained)
    weights = pruned(other.weights, retained)
    weights.setdefault("llm.model.lm_head.weight", weights["llm.model.model.embed_tokens.weight"])
    config = CausalConfig.read({**other.description["qwen2_config"], "num_hidden_layers": len(retained)})
    smaller = LanguageModel.from_official(weights, config, "pruned")
    embedded, _ = sequence(fixture, teacher)
    expected = teacher.tokens.transformer(embedded[None], skip=left_out)
    assert_close(smaller.tokens.transformer(embedded[None]), expected, TOLERANCE, "hidden states")
