"""Run by the official F5-TTS package's own Python: the recipe's class with the exported sampler, against the engine.

Prints JSON.

TensorRT is not there: the recipe's class is given an engine that runs the official network of torch with the same
inputs, each request by itself, as the real one masks what lies beyond a request.
"""

import importlib.util
import json
import shutil
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor, nn

from paretone import cli
from paretone.models.catalogue import entry
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.files.checkpoints import fingerprint
from paretone.sampling.flow import integrate, sampling_grid
from paretone.sampling.guidance import guided_velocity
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values, defaults
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import guidance_interval, searched_grid
from paretone.techniques.searched_grid import PlacedGrid, placed_for
from tests.peers import f5_exports
from tests.peers.f5_exports import FRAMES, PROMPT, SEED, VOCABULARY, official_model, ours, small_release
from tests.peers.official import import_models

RECIPE = "runtime/triton_trtllm"
CASES: dict[str, dict[str, object]] = {
    "epss": {"steps": 7, "guidance": 1.5},
    "uniform, sway": {"steps": 5, "spacing": "uniform", "sway": -0.4, "guidance": 3.0},
    "midpoint": {"steps": 4, "solver": "midpoint"},
    "one branch": {"steps": 6, "guidance": 0.0},
    "first steps guided": {"steps": 5, "guidance": 2.5},
    "placed times": {"steps": 5, "guidance": 1.0},
}
GUIDED, PLACED = "first steps guided", "placed times"
"""Cases with techniques."""
GUIDED_STEPS, TIMES = 2, (0.0, 0.03, 0.11, 0.3, 0.66, 1.0)
VERSIONS = {"v1": "F5TTS_v1_Base", "v0": "F5TTS_Base"}


class Engine:
    """What the recipe asks of a TensorRT engine and its session."""

    def __init__(self, network: nn.Module, least: int) -> None:
        self.network, self.engine, self.least = network, self, least
        self.num_io_tensors = 7
        self.rows: list[int] = []
        """Rows of each run."""

    def get_tensor_name(self, index: int) -> str:
        return ("noise", "cond", "time", "rope_cos", "rope_sin", "input_lengths", "denoised")[index]

    def get_tensor_mode(self, name: str) -> str:
        return "output" if name == "denoised" else "input"

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return (-1, -1, 100)

    def get_tensor_dtype(self, name: str) -> torch.dtype:
        return torch.float32

    def get_tensor_profile_shape(self, name: str, profile: int) -> tuple[tuple[int, ...], ...]:
        return ((self.least, 100, 100), (2, 1500, 100), (8, 3000, 100))

    def set_shapes(self, inputs: dict[str, Tensor]) -> None:
        assert self.least <= len(inputs["noise"]) <= 8
        assert {len(one) for one in inputs.values()} == {len(inputs["noise"])}

    def run(self, inputs: dict[str, Tensor], outputs: dict[str, Tensor], stream: object) -> bool:
        """The official network, from its input projection on, for each row's own frames."""
        dit = self.network
        self.rows.append(len(inputs["noise"]))
        outputs["denoised"].zero_()
        for row, length in enumerate(inputs["input_lengths"].tolist()):
            noise, cond = (inputs[name][row : row + 1, :length] for name in ("noise", "cond"))
            time = dit.time_embed.time_mlp(inputs["time"][row : row + 1])
            hidden = dit.input_embed.proj(torch.cat([noise, cond], dim=-1))
            hidden = dit.input_embed.conv_pos_embed(hidden) + hidden
            rope = dit.rotary_embed.forward_from_seq_len(length)
            for block in dit.transformer_blocks:
                hidden = block(hidden, time, rope=rope)
            outputs["denoised"][row, :length] = dit.proj_out(dit.norm_out(hidden, time))[0]
        return True


class Torch(types.ModuleType):
    """torch without a graphics card, for the recipe's file."""

    def __getattr__(self, name: str) -> Any:
        if name == "device":
            return lambda named: torch.device("cpu")
        if name == "cuda":
            stream = types.SimpleNamespace(cuda_stream=0, synchronize=lambda: None)
            return types.SimpleNamespace(
                Stream=lambda device: stream,
                current_stream=lambda: stream,
                set_device=lambda device: None,
                set_stream=lambda stream: None,
            )
        return getattr(torch, name)


def stand_ins() -> dict[str, types.ModuleType]:
    """What the recipe's file imports and is not there."""
    made = {
        name: types.ModuleType(name)
        for name in (
            "tensorrt",
            "tensorrt_llm",
            "tensorrt_llm._utils",
            "tensorrt_llm.logger",
            "tensorrt_llm.runtime",
            "tensorrt_llm.runtime.session",
        )
    }
    made["tensorrt"].TensorIOMode = types.SimpleNamespace(OUTPUT="output")
    made["tensorrt_llm"].mpi_rank = lambda: 0
    made["tensorrt_llm"].Mapping = lambda **sizes: types.SimpleNamespace(**sizes)
    made["tensorrt_llm._utils"].str_dtype_to_torch = lambda name: getattr(torch, name)
    made["tensorrt_llm._utils"].trt_dtype_to_torch = lambda kind: kind
    made["tensorrt_llm.logger"].logger = types.SimpleNamespace(info=lambda line: None, error=print)
    made["tensorrt_llm.runtime.session"].Session = types.SimpleNamespace(from_serialized_engine=lambda content: content)
    return made


def imported(path: Path) -> types.ModuleType:
    """The module in a file, under its own name."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def profile_of(path: Path, variant: str, case: str) -> Profile:
    """The profile of a case."""
    model, checkpoint = entry(variant), fingerprint(path)
    setting = Setting(model.id, model.options_with(**CASES[case]), seed=SEED)
    if case == GUIDED:
        setting = setting.with_technique(UsedTechnique(guidance_interval.NAME, Values(steps=GUIDED_STEPS)))
    if case != PLACED:
        return Profile(setting, checkpoint, variant)
    belonging = Compatibility.of(model.id, checkpoint, variant, model.options, setting.options)
    grid = PlacedGrid(placed_for(belonging, len(TIMES) - 1), TIMES)
    knobs = defaults(searched_grid.TECHNIQUE.knobs).replace(evaluations=len(TIMES) - 1)
    used = UsedTechnique(searched_grid.NAME, knobs, grid.fingerprint)
    return Profile(setting.with_technique(used), checkpoint, variant, (grid,))


def expected(profile: Profile, case: str, folder: Path, prompt: Tensor, ids: Tensor, frames: int) -> Tensor:
    """The engine's mel (frames, 100) of a case."""
    if case not in (GUIDED, PLACED):
        return ours(profile, folder, prompt, ids, frames)[0]
    options, backbone = profile.setting.options, read_f5_checkpoint(folder).build()
    backbone.fuse()
    times = (
        np.float32(TIMES) if case == PLACED else sampling_grid(options["steps"], options["spacing"], options["sway"])
    )
    canvas = torch.zeros(1, frames, 100)
    canvas[:, : prompt.shape[1]] = prompt
    run = backbone.begin(canvas, ids, times[:-1], True)

    def velocity(state: Tensor, step: int) -> Tensor:
        both = backbone.velocity(state, step, run)
        if case == GUIDED and step >= GUIDED_STEPS:
            return both.chunk(2)[0]
        return guided_velocity(both, options["guidance"])

    noise = torch.randn(1, frames, 100, generator=torch.Generator().manual_seed(SEED))
    return integrate(velocity, noise, times, "euler")[0]


def exported(profile: Profile, out: Path) -> Path:
    out.mkdir()
    profile.save(out / "given.json")
    arguments = ["export", "--target", "f5-triton", "--profile", str(out / "given.json"), "--out", str(out)]
    if cli.main([*arguments, "--quiet"]):
        raise SystemExit(1)
    return out


class Recipe:
    """A copy of the recipe with a profile in it."""

    def __init__(self, source: Path, place: Path) -> None:
        shutil.copytree(source, place)
        self.root = place
        self.models = place / "model_repo_f5_tts" / "f5_tts" / "1"

    def sampler(self, path: Path, folder: Path, network: nn.Module, least: int) -> tuple[Any, Engine]:
        """The sampler as the recipe's model makes it, with this network for an engine."""
        sys.path.insert(0, str(self.models))
        recipe = imported(self.models / "f5_tts_trtllm.py")
        recipe.torch = Torch("torch")
        engine = Engine(network, least)
        recipe.Session = types.SimpleNamespace(from_serialized_engine=lambda content: engine)
        (folder / "rank0.engine").write_bytes(b"engine")
        arch = yaml.safe_load((path.parent / "model.yaml").read_text())["model"]["arch"]
        config = {
            "dtype": "float32",
            "mapping": {"world_size": 1, "cp_size": 1, "tp_size": 1, "pp_size": 1},
            "text_dim": arch["text_dim"],
            "text_mask_padding": arch["text_mask_padding"],
            "conv_layers": arch["conv_layers"],
            "mel_dim": 100,
            "dim_head": 64,
        }
        made = imported(self.models / "paretone_sampler.py").F5TTS(
            {"pretrained_config": config},
            debug_mode=False,
            tllm_model_dir=str(folder),
            model_path=str(path),
            vocab_size=VOCABULARY,
        )
        sys.path.remove(str(self.models))
        return made, engine


def requests(number: int) -> list[tuple[Tensor, Tensor, int]]:
    """Reference mels (1, PROMPT, 100), ids (1, n) and frames; none as long as another."""
    torch.manual_seed(2)
    return [
        (torch.randn(1, PROMPT, 100), torch.randint(0, VOCABULARY, (1, 30 - index)), FRAMES - 5 * index)
        for index in range(number)
    ]


def sampled(sampler: Any, given: list[tuple[Tensor, Tensor, int]]) -> list[Tensor]:
    """The mels that the recipe makes of requests in one batch."""
    longest = max(frames for _, _, frames in given)
    mels = torch.zeros(len(given), longest, 100)
    ids = torch.full((len(given), longest), -1)
    for row, (prompt, text, _) in enumerate(given):
        mels[row, :PROMPT], ids[row, : text.shape[1]] = prompt[0], text[0]
    lengths = [frames for _, _, frames in given]
    found, _ = sampler.sample(ids, mels, torch.full((len(given),), PROMPT), lengths)
    return [mel[:frames] for mel, frames in zip(found, lengths, strict=True)]


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    output, sys.stdout = sys.stdout, sys.stderr
    f5_exports.SMALL["depth"] = 2
    import_models()
    import f5_tts

    sys.modules.update(stand_ins())
    source = Path(next(iter(f5_tts.__path__))) / RECIPE
    results: dict[str, Any] = {"differences": {}, "rows": {}, "sums": {}}
    with tempfile.TemporaryDirectory() as name, torch.inference_mode():
        place = Path(name)
        for version, variant in VERSIONS.items():
            path = small_release(place / version, version)
            network = official_model(path).transformer
            for case in CASES:
                if version == "v0" and case != "epss":
                    continue
                profile = profile_of(path, variant, case)
                out = exported(profile, place / f"{version} {case}")
                recipe = Recipe(source, place / f"recipe {version} {case}")
                installer = imported(out / "install.py")
                installer.install(recipe.root)
                given = requests(2)
                for least in (1, 2):
                    sampler, engine = recipe.sampler(path, out, network, least)
                    alone, both = sampled(sampler, given[:1]), sampled(sampler, given)
                    results["rows"][f"{version}, {case}, from {least}"] = sorted(set(engine.rows))
                    wanted = [expected(profile, case, path.parent, *one) for one in given]
                    pairs = [(alone[0], wanted[0]), *zip(both, wanted, strict=True)]
                    results["differences"][f"{version}, {case}, from {least}"] = max(
                        (one - two)[PROMPT:].abs().max().item() for one, two in pairs
                    )
                results["sums"][f"{version}, {case}"] = wanted[0].sum().item()
                results["text"] = [
                    line for line in (recipe.models / "model.py").read_text().splitlines() if "F5TTS" in line
                ]
                installer.install(recipe.root, remove=True)
                results["restored"] = results.get("restored", True) and same(source, recipe.root)
    print(json.dumps(results), file=output)


def same(one: Path, two: Path) -> bool:
    """Whether two folders hold the same files, what Python compiled aside."""

    def files(root: Path) -> dict[str, bytes]:
        return {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }

    return files(one) == files(two)


if __name__ == "__main__":
    main()
