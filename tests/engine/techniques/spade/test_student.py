"""Properties of the distillation's terms; their values are checked by parity."""

from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import SettingError
from paretone.models import load_model
from paretone.models.catalogue import entry, voice
from paretone.models.files.layer_importance import COSINE, DIVERGENCE, FILE, LayerImportance, read_record
from paretone.models.minis.lm_mini import LmMiniSpeech
from paretone.paths import resource
from paretone.reading import parsed_toml
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted
from paretone.studies.definition import parse
from paretone.techniques import problem, resolve, spade
from paretone.techniques.spade import training
from paretone.training.token_recipe import Seen, divergence
from paretone.views.figure import Bars
from tests.engine.small_language import write_model, write_student
from tests.engine.speaking import load, view, write_all
from tests.workload import workload

DEPTH = 6


@pytest.fixture(scope="module")
def model() -> LmMiniSpeech:
    return load_model("lm-mini", device="cpu")


def stage(recovery: str) -> Setting:
    plain = Setting("lm-mini", entry("lm-mini").options_with(), seed=1)
    return plain.with_technique(UsedTechnique(spade.NAME, Values(depth=DEPTH, recovery=recovery)))


@pytest.mark.parametrize("recovery", workload([spade.NONE, spade.RECOVERED], [spade.RECOVERED]))
def test_every_stage_is_offered_and_speaks(model: LmMiniSpeech, recovery: str) -> None:
    chosen = stage(recovery)
    partly, recovered = (resolve(model.info, stage(one)).weights for one in (spade.PARTLY, spade.RECOVERED))
    assert partly.retained == recovered.retained == resolve(model.info, stage(spade.NONE)).layers
    assert 0 < partly.minutes < recovered.minutes and recovered.recovered and not partly.recovered
    assert problem(model.info, chosen) is None
    script = scripted(model, "Rice is good.", voice("", "lm-mini"), chosen)
    cycles = [cycle for _, decoding in model.decodings(script) for cycle in decoding]
    tokens = [token for cycle in cycles for token in cycle.tokens]
    assert 0.4 < len(tokens) / model.info.token_rate < 5
    if recovery != spade.NONE:  # Pruned, speech seldom ends by itself.
        assert cycles[-1].stopped


def seen(seed: int, layers: int = 2) -> Seen:
    generator = torch.Generator().manual_seed(seed)
    outputs = {layer: torch.randn(2, 5, 4, generator=generator) for layer in range(layers)}
    attention = {layer: torch.rand(2, 1, 5, 5, generator=generator) for layer in range(layers)}
    return Seen(torch.randn(7, 9, generator=generator), torch.randn(2, 5, 4, generator=generator), outputs, attention)


def test_the_skewed_divergence_has_the_gradient_of_the_divergence_itself() -> None:
    wanted = seen(0).logits
    gradients = []
    entropy = -(wanted.softmax(-1) * wanted.log_softmax(-1)).sum(-1).mean()
    for constant in (0.0, float(entropy)):
        found = seen(1).logits.requires_grad_()
        (training.skewed_divergence(found, wanted) - constant).backward()
        gradients.append(found.grad)
    assert torch.equal(*gradients)
    # Without skew it is the divergence plus the teacher's entropy.
    plain = training.skewed_divergence(seen(1).logits, wanted, skew=0.0)
    assert float(plain) == pytest.approx(float(divergence(seen(1).logits, wanted) + entropy), abs=1e-5)


def test_losses_are_relative_and_leave_padding_out() -> None:
    student, teacher = seen(0), seen(1)
    heard = torch.ones(2, 5, dtype=torch.bool)
    heard[1, 3:] = False
    whole = training.latent_loss(student, teacher, (0, 1), heard), training.embedding_loss(student, teacher, heard)
    for one in (*student.outputs.values(), student.embedded):
        one[1, 3:] = 1000
    assert training.latent_loss(student, teacher, (0, 1), heard) == whole[0]
    assert training.embedding_loss(student, teacher, heard) == whole[1]
    before = training.latent_loss(student, teacher, (0, 1), relative=True)
    for one in (*student.outputs.values(), *teacher.outputs.values()):
        one.mul_(30)
    after = training.latent_loss(student, teacher, (0, 1), relative=True)
    assert float(after) == pytest.approx(float(before), rel=1e-5)
    assert float(training.latent_loss(student, teacher, (0, 1))) > 100 * float(before)
    terms = training.composite_loss(student, teacher, torch.arange(7), (0, 1))
    named = terms.named()
    others = sum(value for name, value in named.items() if name != "cross_entropy")
    assert float(terms.total(1.0)) == pytest.approx(named["cross_entropy"])
    assert float(terms.total(0.0)) == pytest.approx(others / 4)


def test_the_loss_is_the_papers_formula_under_every_choice() -> None:
    student, teacher = seen(0), seen(1)
    own = training.composite_loss(student, student, torch.zeros(7, dtype=torch.long), (0, 1))
    assert float(own.latent) == float(own.attention) == float(own.embedding) == 0
    assert training.target_layers((0, 3, 4), 8) == (2, 3, 7)
    assert training.target_layers((0, 3, 4), 8, original=True) == (0, 3, 4)
    labels, alpha, skew, scale = torch.arange(7), 0.4, 0.3, 8.0
    terms = training.composite_loss(student, teacher, labels, (1, 1), skew=skew)
    wanted, found = (one.logits.double().softmax(-1) for one in (teacher, student))
    hard = -student.logits.double().log_softmax(-1)[labels, labels].mean()
    logits = -(wanted * (skew * wanted + (1 - skew) * found).log()).sum(-1).mean()
    latent = torch.stack([(student.outputs[one] - teacher.outputs[1]).square().mean() for one in (0, 1)]).mean()
    maps = torch.stack([(student.attention[one] - teacher.attention[1]).square().mean() for one in (0, 1)]).mean()
    embedding = (student.embedded - teacher.embedded).square().mean()
    plain = alpha * hard + (1 - alpha) / 4 * (logits + latent + scale * maps + embedding)
    assert float(terms.total(alpha, scale)) == pytest.approx(float(plain), rel=1e-5)


def test_choices_out_of_range_are_refused() -> None:
    for changes, words in (
        ({"alpha": 1.5}, "α must lie between 0 and 1, not be 1.5"),
        ({"skew": -0.1}, "skew λ must lie"),
        ({"attention_interval": 0}, "not every 0"),
        ({"importance": "size"}, "no importance 'size'; known: word_error, whisper, divergence, cosine"),
    ):
        with pytest.raises(SettingError, match=words):
            spade.StudentRequest(model="lm-mini", work="none", **changes)


def test_memory_and_time_by_depth(language_model: LmMiniSpeech) -> None:
    figure = view(language_model, "depth", depths=3, rounds=1)
    memory, time, peak = (panel.curves[0] for panel in figure.panels)
    assert peak.name == "process" and min(peak.y) > 50, "MiB of an interpreter with torch"
    assert "layers that are loaded here but not run are subtracted" in figure.caption
    assert memory.x == time.x == (1.0, 2.0, 3.0)
    config = language_model.own.tokens.transformer.config
    # Four projections of attention, three of the feed-forward part, two norms.
    layer = 4 * (4 * 16 * 16 + 3 * 16 * 24 + 2 * 16)
    tokens = int(time.notes[2].split()[0])
    cache = 2 * config.key_value_heads * config.head_width * tokens * 4
    steps = np.diff(memory.y) * 2**20
    assert steps == pytest.approx([layer + cache] * 2, rel=1e-6)
    assert all(value > 0 for value in time.y)


def test_layer_importance_draws_the_measurement_at_hand(language_model: LmMiniSpeech, tmp_path: Path) -> None:
    root = write_all(tmp_path / "model")
    place = root / FILE
    record = read_record((root,), language_model.info.fingerprint)
    ends = (0.1, 0.2, 0.3), (0.3, 0.4, 0.5)
    for one in (
        LayerImportance(DIVERGENCE, (0.2, 0.3, 0.4), *ends, ((0, 1), (0, 2), (2, 2)), 0.0, 4),
        LayerImportance(COSINE, (0.4, 0.2, 0.1)),
    ):
        record = record.with_measure(one)
    record.write(place)
    figure = view(load(root), "layer-importance")
    assert [panel.y.title for panel in figure.panels] == ["WLI", "KL", "1 − cosine"]
    errors, divergence, _ = figure.panels
    assert isinstance(errors, Bars)
    assert errors.series[0].values == (300.0, 100.0, 200.0), "in per cent"
    assert divergence.series[0].low == ends[0] and divergence.series[0].notes[1] == "rank 1 to 3"
    assert "the most important layers are 0, 2, 1" in figure.caption


def test_the_ablation_is_a_study_of_the_students_that_were_trained(tmp_path: Path) -> None:
    root = write_model(tmp_path / "model")
    write_student(root, (0, 1)).rename(root / "students" / "student-2-cosine.safetensors")
    write_student(root, (0, 2), targets="original")
    text = resource("studies", "lm-mini-ablation.toml").read_text(encoding="utf-8")
    for ours, theirs in (("0,1,8,9,10,11", "0,2"), ("0,1,2,9,10,11", "0,1")):
        assert f'layers = "{ours}"' in text
        text = text.replace(ours, theirs)
    model, settings = load(root), {one.name: one.setting for one in parse(parsed_toml(text)).candidates}
    assert len(settings) == 6 and problem(model.info, settings["SPADE"]) is not None, "not trained yet"
    write_student(root, (0, 2))
    info = model.look_for_weights(lambda: None)
    ran = {name: resolve(info, one).weights for name, one in settings.items() if "SPADE" in name}
    assert {name: (one.retained, one.targets) for name, one in ran.items()} == {
        "SPADE": ((0, 2), "following"),
        "SPADE, layers by cosine": ((0, 1), "following"),
        "SPADE, original layers": ((0, 2), "original"),
    }
