"""Drafts that read their target's hidden states: exact, drafted as they were trained, learnt, saved and found."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from paretone.errors import SettingError
from paretone.models.catalogue import voice
from paretone.models.families.language_network import FeatureDrafter, TokenModel
from paretone.models.files.checkpoints import fingerprint, metadata_of
from paretone.models.files.trained_weights import DRAFTS
from paretone.models.networks.feature_draft import FeatureDraft
from paretone.sampling.autoregressive import after_prompt, decode
from paretone.sampling.speculative import FeatureReader, speculation
from paretone.sampling.tokens import Greedy, Nucleus, Uniforms
from paretone.setting.knobs import Values
from paretone.setting.plan import NotPrepared
from paretone.setting.setting import UsedTechnique
from paretone.speaking import scripted
from paretone.techniques import resolve, speculative
from paretone.techniques.speculative.feature_training import FeatureDraftOptions, FeatureDraftRecipe, read_layers
from paretone.training.spoken_tokens import write_tokens
from paretone.training.teachers import LmMiniTeacher, read_teacher
from paretone.training.token_recipe import TokenData
from tests.engine.command_line import Console
from tests.engine.models.small_causal import small_model
from tests.engine.sampling.test_autoregressive import NEVER, request_of, tokens_of
from tests.engine.sampling.test_speculative import CRITICAL, MANY, distance, places_of, rule_of
from tests.engine.small_language import write_draft, write_model, write_student
from tests.engine.speaking import TEXT, drafted, load, setting, shallow, spoken
from tests.engine.training.learning import same_weights
from tests.engine.training.test_companions import SENTENCES, Follower, train, utterances
from tests.workload import workload

READS = (1, 2)


def pair() -> tuple[TokenModel, FeatureDrafter, FeatureDraft]:
    """A target, and a draft that often agrees with it: its own output is that of the target's last layer."""
    target = small_model(stop_score=NEVER)
    torch.manual_seed(0)
    plain = target.plain_transformer
    draft = FeatureDraft.of_target(plain.float(), target.head.float(), target.bias.float(), READS, 20).double()
    plain.double()
    width = plain.config.hidden
    with torch.no_grad():
        draft.mix.weight.zero_()[:, 2 * width :] = torch.eye(width)
        draft.join.weight.copy_(torch.cat([0.5 * torch.eye(width), torch.eye(width)], dim=1))
    fast = target.optimised()
    return fast, FeatureDrafter(draft, fast), draft


@pytest.mark.parametrize("block", [False, True], ids=["by token", "by block"])
def test_without_tolerance_tokens_are_the_targets(block: bool) -> None:
    target, draft, _ = pair()
    request = request_of(target, maximum=workload(MANY, MANY // 2))
    cycles = list(speculation(target, draft, request, Nucleus(), Uniforms(11), rule_of(target, block), 3))
    assert {"resampled", "bonus"} <= {cycle.outcome for cycle in cycles}
    assert 0.1 < sum(cycle.accepted for cycle in cycles) / sum(len(cycle.drafted) for cycle in cycles) < 0.9
    assert distance(places_of(target, target.kept([0, 1, 3]), request, Nucleus(), cycles)) < CRITICAL
    expected = tokens_of(list(decode(target, request, Greedy(), Uniforms(0))))
    found = list(speculation(target, draft, request, Greedy(), Uniforms(0), rule_of(target, block), 3))
    assert tokens_of(found) == expected and len(found) < len(expected)


def test_it_drafts_as_it_was_trained() -> None:
    """Places of a draft after tokens that were verified are those of the unrolled passes."""
    target, draft, trained = pair()
    request, tokens = request_of(target, maximum=40), [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
    reader = after_prompt(target, request, 40, draft.reads)
    drafter = FeatureReader(draft, request, reader)
    with torch.inference_mode():
        reader.logits(tokens, 1)
        features = reader.features(0, len(tokens))
        embedded = torch.cat([request.embedded[:, -1:], target.embed(tokens)[None]], dim=1)
        unrolled = trained.unroll(torch.nn.functional.pad(features[None], (0, 0, 1, 0)), embedded, 3)
        for verified in (0, 4, 7):
            for place in range(3):
                found = drafter.logits(tokens[: verified + place], 1)[0]
                expected = trained.logits(unrolled[place][0, verified + place])
                assert torch.allclose(found, expected.float(), atol=1e-5), (verified, place)
            drafter.keep(verified + 1)


def test_layers_to_read() -> None:
    assert [read_layers(count) for count in (1, 2, 3, 12, 24)] == [(), (0, 1), (1,), (2, 6), (2, 12)]


@pytest.fixture
def root(tmp_path: Path, one_thread: None) -> Path:
    return write_model(tmp_path / "model")


def recipe_of(teacher: LmMiniTeacher) -> FeatureDraftRecipe:
    data = TokenData(utterances()[4:], utterances()[:4], "a test")
    options = FeatureDraftOptions(positions=300, warm_up=1, average_decay=0.5)
    return FeatureDraftRecipe(teacher, data, torch.device("cpu"), options)


def test_it_learns_resumes_and_speaks(root: Path) -> None:
    teacher = read_teacher("lm-mini", str(root), Follower())
    recipe = recipe_of(teacher)
    before = recipe.validate()
    train(recipe, 12)
    resumed = recipe_of(teacher)
    resumed.restore(copy.deepcopy(recipe.state()))
    train(recipe, 13, first=13)
    train(resumed, 13, first=13)
    assert same_weights(resumed.model, recipe.model)
    after = recipe.validate()
    assert all(after[name] > before[name] for name in ("acceptance", "acceptance 2", "acceptance 3"))
    recipe.save(root / DRAFTS / recipe.file_name, recipe.metadata_after(60))
    model = load(root)
    (found,) = model.info.feature_drafts
    assert found.reads == recipe.model.reads and not model.info.drafts
    said = spoken(model, setting(drafted(draft="features", adaptive=False)))
    drafts = [cycle for cycle in said.trace.decoding.cycles if cycle.drafted]
    assert drafts and said.measurements.ops_ratio > 1
    network = model.networks(resolve(model.info, setting(drafted(draft="features")))).draft.tokens
    model.info = replace(model.info, lacking=())  # As on a device that records graphs.
    script = scripted(model, TEXT, voice("", "lm-mini"), setting(drafted(draft="features"), UsedTechnique("graphs")))
    assert model.internals(script).networks.draft.tokens is network, "its passes take the target's states, too"
    rows = torch.randn(5, network.head.shape[1])
    expected = recipe.average.module.logits(rows)
    assert (network.logits(rows) - expected).abs().max() < 0.02 * expected.abs().max()
    with pytest.raises(SettingError, match="cannot speak alone"):
        resolve(model.info, setting(drafted(draft="features", alone=True)))
    write_draft(root)
    write_student(root)
    info = load(root).info
    of_layers = info.drafts[0]
    assert resolve(info, setting(drafted())).draft == info.feature_drafts[0] == found
    assert resolve(info, setting(drafted(draft="layers"))).draft == of_layers
    assert resolve(info, setting(drafted(alone=True))).weights == of_layers
    named = UsedTechnique(speculative.NAME, Values(), of_layers.fingerprint)
    assert resolve(info, setting(named)).draft == of_layers
    assert resolve(info, setting(drafted(), shallow(depth=2))).draft == of_layers
    with pytest.raises(SettingError, match="reads the whole model"):
        resolve(info, setting(drafted(draft="features"), shallow(depth=2)))


def test_with_other_products_it_still_reads_the_target() -> None:
    _, draft, _ = pair()
    places, states, embedded = torch.arange(5), *torch.randn(2, 5, draft.head.shape[1]).double()
    expected = draft.draft(states, embedded, draft.cache(5), places, 2)
    changed = draft.with_products(lambda product, inputs: lambda x: 2 * product(x.reshape(-1, inputs)))
    assert isinstance(changed, FeatureDrafter) and changed.reads == READS
    features = torch.randn(3, (len(READS) + 1) * draft.head.shape[1]).double()
    assert torch.equal(changed.mix(features), 2 * draft.mix(features))
    found = changed.draft(states, embedded, changed.cache(5), places, 2)
    assert all(one.shape == other.shape and not one.equal(other) for one, other in zip(found, expected, strict=True))
    assert torch.equal(draft.draft(states, embedded, draft.cache(5), places, 2)[1], expected[1])


def test_the_command_trains_one_which_other_models_do_not_take(root: Path, tmp_path: Path, console: Console) -> None:
    work = tmp_path / "work"
    place = ["--folder", str(root), "--work", str(work), "--export", str(root), "--device", "cpu", "--threads", "1"]
    more = f"--features --positions 300 --sentences {SENTENCES} --steps 2 --json".split()
    write_tokens(work / f"{fingerprint(root / 'model.safetensors')[:8]}-{SENTENCES}-own-speech.npz", utterances())
    made = console.data("train", "draft", *place, *more)
    assert made["reads"] == "1" and 0 < made["validation"]["acceptance"] < 1
    assert metadata_of(Path(made["checkpoint"]))["kind"] == "feature-draft"
    other = write_model(tmp_path / "other", seed=3)
    (other / DRAFTS).mkdir()
    Path(made["checkpoint"]).rename(other / DRAFTS / "draft-on-features.safetensors")
    info = load(other).info
    assert not info.feature_drafts and len(info.foreign) == 1
    with pytest.raises(NotPrepared, match="made from another checkpoint") as missing:
        resolve(info, setting(drafted(draft="features")))
    assert " --features " in missing.value.command
