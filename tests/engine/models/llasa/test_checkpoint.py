"""Reading LLaSA's checkpoint: rows of speech tokens, students and drafts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from paretone.errors import CheckpointError
from paretone.models.base import DraftWeights, StudentWeights
from paretone.models.families.language_network import LanguageNetwork, drafting
from paretone.models.files.checkpoints import WEIGHTS
from paretone.models.llasa.checkpoint import EMBEDDING, HEAD, TEXTS, LlasaFolder, optimised, parameters
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.sampling.tokens import Nucleus
from tests.engine.models.llasa.small_release import (
    CODES,
    CONFIG,
    FIRST_CODE,
    LOCAL,
    ROWS,
    language_weights,
    student_tensors,
    write_language_model,
)

pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> LlasaFolder:
    return LlasaFolder.read(write_language_model(tmp_path_factory.mktemp("models") / "Llasa-1B"))


@pytest.fixture(scope="module")
def network(folder: LlasaFolder) -> LanguageNetwork:
    return folder.plain()


def some_hidden(count: int = 50) -> torch.Tensor:
    return torch.randn(count, CONFIG["hidden_size"], generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("tied", [True, False])
def test_rows_that_speak_give_what_the_whole_head_gives_masked(tmp_path: Path, tied: bool) -> None:
    place = write_language_model(tmp_path, tied)
    weights = {name: value.float() for name, value in load_file(place / WEIGHTS).items()}
    tokens = LlasaFolder.read(place).plain().tokens
    whole = some_hidden() @ weights[EMBEDDING if tied else HEAD].T
    others = torch.ones(ROWS, dtype=torch.bool)
    others[LOCAL] = False
    masked = whole.masked_fill(others, -torch.inf)
    found = tokens.logits(some_hidden())
    assert torch.allclose(found, masked[:, LOCAL], atol=1e-5)
    sampler = Nucleus(0.8, 50)
    expected = sampler.probabilities(masked, range(50))
    assert expected[:, others].count_nonzero() == 0
    assert torch.allclose(sampler.probabilities(found, range(50)), expected[:, LOCAL], atol=1e-6)
    assert (tokens.embedding == weights[EMBEDDING][LOCAL]).all()


def test_a_prompt_is_embedded_and_continued_as_by_the_whole_model(
    folder: LlasaFolder, network: LanguageNetwork
) -> None:
    weights = {name: value.float() for name, value in language_weights().items()}
    whole = CausalTransformer(CausalConfig.read(CONFIG))
    whole.load_state_dict({name.removeprefix("model."): value for name, value in weights.items() if name != EMBEDDING})
    ids, codes = folder.tokenizer.ids("<|begin_of_text|>Some text.<|SPEECH_GENERATION_START|>"), [4, 90, 4]
    official = weights[EMBEDDING][[*ids, *(FIRST_CODE + code for code in codes)]]
    embedded = torch.cat([network.tables[TEXTS][ids], network.tokens.embed(codes)])
    assert (embedded == official).all()
    with torch.inference_mode():
        expected = (whole(official[None]) @ weights[EMBEDDING].T)[..., LOCAL]
        found = network.tokens.logits(network.tokens.transformer(embedded[None]))
        fused = optimised(network).tokens
        quick = fused.logits(fused.transformer(embedded[None]))
    assert (found - expected).abs().max() < 1e-4 and (quick - expected).abs().max() < 1e-4


def test_tied_tables_are_one_and_counted_once(network: LanguageNetwork) -> None:
    assert network.tokens.head.data_ptr() == network.tokens.embedding.data_ptr()
    assert parameters(network) == sum(value.numel() for value in language_weights().values()) + CONFIG["hidden_size"]


def test_weights_stay_bfloat16_where_that_is_asked_for(folder: LlasaFolder) -> None:
    wide = folder.plain()
    narrow = optimised(LlasaFolder.read(folder.shards.folder, torch.bfloat16).plain())
    assert narrow.tokens.head.dtype == narrow.tables[TEXTS].dtype == torch.bfloat16
    ids = torch.arange(20)
    with torch.inference_mode():
        expected = wide.tokens.logits(wide.tokens.transformer(wide.tokens.embed(ids)[None]))
        cache = narrow.tokens.cache(20)
        found = narrow.tokens.logits(narrow.tokens.transformer(narrow.tokens.embed(ids)[None], cache))
    assert (found.float() - expected).abs().max() < 0.05 * expected.abs().max()


# --- Students and drafts ---------------------------------------------------------------------------------------------
def test_a_student_has_its_own_layers_and_head(folder: LlasaFolder, network: LanguageNetwork, tmp_path: Path) -> None:
    path = tmp_path / "student.safetensors"
    save_file(student_tensors((0, 2)), path)
    student = folder.student(StudentWeights(str(path), "0" * 64, (0, 2), "recovered", 5.0)).tokens
    pruned = network.tokens.kept((0, 2))
    embedded = network.tokens.embed(torch.arange(12))[None]
    with torch.inference_mode():
        expected = 2 * pruned.logits(pruned.transformer(embedded))
        found = student.logits(student.transformer(embedded))
    assert (found - expected).abs().max() < 0.01 * expected.abs().max()
    with pytest.raises(CheckpointError, match=r"unexpected: model\.layers\.1"):
        folder.student(StudentWeights(str(path), "0" * 64, (0,), "recovered", 5.0))


def test_a_draft_is_the_targets_layers_with_some_of_its_own(
    folder: LlasaFolder, network: LanguageNetwork, tmp_path: Path
) -> None:
    path = tmp_path / "draft.safetensors"
    trained = {name: value * 1.5 for name, value in language_weights().items() if name.startswith("model.layers.0.")}
    head = student_tensors((0,))[HEAD]
    save_file(trained | {HEAD: head}, path)
    weights = DraftWeights(str(path), "0" * 64, (0, 2), (0,), True)
    found = folder.draft(weights)
    assert list(found.layers) == [0] and found.head.shape == (CODES + 1, CONFIG["hidden_size"])
    for one in (network, LlasaFolder.read(folder.shards.folder, torch.bfloat16).plain()):
        own = optimised(one)
        draft = drafting(own, weights, found).tokens
        with torch.inference_mode():
            logits = draft.logits(draft.transformer(own.tokens.embed(torch.arange(5))[None], draft.cache(5)))
        assert logits.shape == (1, 5, CODES + 1) and logits.isfinite().all()
    save_file(trained | {"vocoder.bias": head}, path)
    with pytest.raises(CheckpointError, match="is not a draft of LLaSA: it holds"):
        folder.draft(weights)
