"""Run by the official package's own Python: exported profiles there, against the engine; prints what differs as JSON.

Largest absolute differences of mels, by case; refusals as their sentences.
"""

import copy
import importlib.util
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import torch
import yaml
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from paretone import cli
from paretone.models import load_model
from paretone.models.catalogue import entry, voice
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.models.files.checkpoints import fingerprint
from paretone.models.networks.diffusion import add_interval
from paretone.paths import resource
from paretone.sampling.actions import SkipAction
from paretone.sampling.flow import integrate, sampling_grid
from paretone.sampling.guidance import guided_velocity, is_guided
from paretone.sampling.schedules import evaluation_times
from paretone.sampling.skipping import LayerMemory
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import compatibility_of, ditreducio
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.table import StrategyTable
from tests.peers.official import import_models
from tests.workload import crossed, workload

SMALL = {"dim": 64, "depth": 3, "heads": 2, "ff_mult": 2, "text_dim": 32, "conv_layers": 2}
VERSIONS = {"v1": {"text_mask_padding": True}, "v0": {"text_mask_padding": False, "pe_attn_head": 1}}
VOCABULARY, FRAMES, PROMPT, SEED = 20, 48, 20, 5
METADATA = {"cfg_free": "true", "weight": "0.5", "equivalent_guidance": "1", "method": "model-guidance"}
ROWS = ("NONE BS TS BS NONE TS TS", "NONE TS BS BS TS NONE BS", "NONE NONE BS NONE BS TS NONE")


def small_release(folder: Path, version: str, guidance_free: bool = False) -> Path:
    """Random weights in the official layout, with a configuration file; all of them count."""
    folder.mkdir()
    arch = SMALL | VERSIONS[version]
    backbone = DiT(BackboneConfig.from_official("DiT", arch, VOCABULARY, "test"))
    for parameter in backbone.parameters():
        if not parameter.any():
            nn.init.normal_(parameter, std=0.3)
    weights = {f"ema_model.transformer.{name}": value for name, value in backbone.state_dict().items()}
    weights |= {"initted": torch.tensor(True), "step": torch.tensor(3)}
    metadata = METADATA | {"base": "0" * 64, "steps": "3"} if guidance_free else None
    save_file(weights, folder / "model.safetensors", metadata)
    model = {"name": f"small-{version}", "backbone": "DiT", "arch": arch, "tokenizer": "char", "mel_spec": {}}
    (folder / "model.yaml").write_text(yaml.safe_dump({"model": model}))
    return folder / "model.safetensors"


def official_model(path: Path) -> nn.Module:
    """The official classes with the weights of ``path``, loaded as ``f5_tts.infer.utils_infer.load_checkpoint`` does:
    prefixes off, counters out, strictly."""
    import_models()
    from f5_tts.model.backbones.dit import DiT as OfficialDiT
    from f5_tts.model.cfm import CFM

    arch = yaml.safe_load((path.parent / "model.yaml").read_text())["model"]["arch"]
    weights = {name.removeprefix("ema_model."): value for name, value in load_file(path).items()}
    entries = len(weights["transformer.text_embed.text_embed.weight"]) - 1
    model = CFM(OfficialDiT(**arch, mel_dim=100, text_num_embeds=entries)).eval()
    model.load_state_dict({name: value for name, value in weights.items() if name not in ("initted", "step")})
    return model


def profile_of(path: Path, table: str = "", branch_skip: str = "both", **options: object) -> Profile:
    """A profile on the weights of ``path``; a table of :data:`ROWS` where one is asked for."""
    model = entry("F5TTS_v1_Base")
    setting = Setting(model.id, model.options_with(**options), seed=SEED)
    variant = read_f5_checkpoint(path).variant
    if not table:
        return Profile(setting, fingerprint(path), variant)
    compatibility = Compatibility.of(model.id, fingerprint(path), variant, model.options, setting.options)
    actions = tuple(tuple(SkipAction[name] for name in row.split()) for row in ROWS)
    made = StrategyTable(compatibility, actions, branch_skip)
    knobs = Values({knob.name: knob.default for knob in ditreducio.TECHNIQUE.knobs} | {"branch_skip": branch_skip})
    used = UsedTechnique(ditreducio.TECHNIQUE.name, knobs, made.fingerprint)
    return Profile(setting.with_technique(used), fingerprint(path), variant, (made,))


def exported(profile: Profile, folder: Path, out: Path, target: str = "f5-tts") -> object:
    """Export the profile, and import the module that the export wrote."""
    out.mkdir()
    profile.save(out / "given.json")
    arguments = ["export", "--target", target, "--profile", str(out / "given.json"), "--folder", str(folder)]
    if cli.main([*arguments, "--out", str(out), "--quiet"]):
        raise SystemExit(1)
    if target != "f5-tts":
        return None
    spec = importlib.util.spec_from_file_location("paretone_profile", out / "paretone_profile.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@torch.inference_mode()
def ours(profile: Profile, folder: Path, prompt: Tensor, ids: Tensor, frames: int = FRAMES) -> Tensor:
    """The engine's mel of the whole canvas."""
    options = profile.setting.options
    backbone = read_f5_checkpoint(folder).build()
    backbone.fuse()
    times = sampling_grid(options["steps"], options["spacing"], options["sway"])
    canvas = torch.zeros(1, frames, 100)
    canvas[:, : prompt.shape[1]] = prompt
    evaluations = evaluation_times(times, options["solver"])
    run = backbone.begin(canvas, ids, evaluations, is_guided(options["guidance"]))
    plan = None if profile.artefact("table") is None else skip_plan(profile.artefact("table"))
    memory = [LayerMemory() for _ in range(backbone.layers)]

    def velocity(state: Tensor, evaluation: int) -> Tensor:
        skipped = () if plan is None else (plan.at(evaluation), memory)
        return guided_velocity(backbone.velocity(state, evaluation, run, *skipped), options["guidance"])

    noise = torch.randn(1, frames, 100, generator=torch.Generator().manual_seed(SEED))
    return integrate(velocity, noise, times, options["solver"])


def theirs(model: nn.Module, prompt: Tensor, ids: Tensor, **options: object) -> Tensor:
    """The official mel of the whole canvas, asked for with the package's defaults unless told otherwise."""
    given = {"steps": 32, "cfg_strength": 2.0, "sway_sampling_coef": -1.0, "seed": SEED} | options
    return model.sample(prompt, ids, FRAMES, **given)[0]


@contextmanager
def noise_of_its_own() -> Iterator[None]:
    """The noise of ``SEED`` for every caller: the package seeds one generator that all threads draw from."""
    shared = torch.randn
    torch.randn = lambda *shape, **options: shared(*shape, generator=torch.Generator().manual_seed(SEED), **options)
    try:
        yield
    finally:
        torch.randn = shared


def difference(one: Tensor, two: Tensor) -> float:
    """Of the new speech, in units of the log mel."""
    return (one - two)[:, PROMPT:].abs().max().item()


def random_weights(place: Path, results: dict) -> None:
    """Both versions, all kinds of profile: each of one with each of the other where tests are thorough."""
    prompt, ids = torch.randn(1, PROMPT, 100), torch.randint(0, VOCABULARY, (1, 30))
    cases = {
        "baseline": {},
        "steps and guidance": {"steps": 7, "guidance": 3.5, "sway": -0.5, "spacing": "uniform"},
        "pruned steps": {"steps": 7, "guidance": 1.5},
        "midpoint": {"steps": 4, "solver": "midpoint"},
        "table": {"steps": 7, "table": "yes"},
        "table, attention only": {"steps": 7, "table": "yes", "branch_skip": "attention"},
        "one branch": {"steps": 6, "guidance": 0.0},
    }
    # "baseline" is compared with what either version does by default.
    few = [("table", "v1"), ("one branch", "v1"), ("midpoint", "v0")]
    chosen = {*workload(crossed(list(cases), list(VERSIONS)), few), *(("baseline", version) for version in VERSIONS)}
    for version in VERSIONS:
        folder = place / version
        path = small_release(folder, version)
        model = official_model(path)
        untouched, briefly = theirs(model, prompt, ids), theirs(model, prompt, ids, steps=3)
        for name in (name for name in cases if (name, version) in chosen):
            profile = profile_of(path, **cases[name])
            module = exported(profile, folder, place / f"{version} {name}")
            module.apply(model, place / f"{version} {name}")
            given = theirs(model, prompt, ids)
            results["differences"][f"{version}, {name}"] = difference(given, ours(profile, folder, prompt, ids))
            results["changed"][f"{version}, {name}"] = difference(given, untouched)
            if workload(True, "table" in cases[name]):  # Only layers that are reused have a memory.
                with ThreadPoolExecutor(2) as pool, noise_of_its_own():
                    both = list(pool.map(theirs, (model, model), (prompt, prompt), (ids, ids)))
                results["threads"] += [torch.equal(one, given) for one in both]
            module.remove(model)
            results["restored"] &= torch.equal(theirs(model, prompt, ids, steps=3), briefly)
            results["restored"] &= not any(
                "forward" in one.__dict__ or "sample" in one.__dict__ for one in model.modules()
            )


def guidance_free_weights(place: Path, results: dict) -> None:
    """A CFG-free checkpoint, exported both ways; what is exported is what runs."""
    folder = place / "free"
    path = small_release(folder, "v1", guidance_free=True)
    prompt, ids = torch.randn(1, PROMPT, 100), torch.randint(0, VOCABULARY, (1, 30))
    profile = profile_of(path, steps=7, guidance=0.0)
    for target in ("f5-tts", "safetensors"):
        out = place / f"free {target}"
        module = exported(profile, folder, out, target)
        (weights,) = out.glob("model_cfg_free_*.safetensors")
        model = official_model(weights)
        if module is not None:
            module.apply(model, out)
        given = theirs(model, prompt, ids, steps=7, cfg_strength=0.0)
        results["differences"][f"CFG-free, {target}"] = difference(given, ours(profile, folder, prompt, ids))


def bundled(place: Path, results: dict) -> None:
    """Compare the bundled model in the engine, under a table, with official code under the exported profile."""
    speech = load_model("f5-mini", device="cpu")
    model = entry("f5-mini")
    options = model.options_with(steps=7, guidance=2.0)
    setting = Setting(model.id, options, seed=SEED)
    row = tuple(SkipAction[name] for name in ROWS[0].split())
    table = StrategyTable(compatibility_of(speech.info, setting), (row,) * speech.info.layers)
    knobs = Values({knob.name: knob.default for knob in ditreducio.TECHNIQUE.knobs})
    used = setting.with_technique(UsedTechnique(ditreducio.TECHNIQUE.name, knobs, table.fingerprint))
    prompt, prepared = speech.prepare("The juice of lemons makes fine punch.", voice(), options, lambda: None)
    passage = prepared.passages[0]
    # Without a table it does what the releases do under random weights.
    plain = {"baseline": Profile.of(setting, speech.info)}
    for name, profile in (plain | {"table": Profile.of(used, speech.info, (table,))}).items():
        module = exported(profile, model.folder, place / f"bundled {name}")
        cfm = official_model(model.folder / "model.safetensors")
        module.apply(cfm, place / f"bundled {name}")
        mel = cfm.sample(prompt.mel, passage.ids, passage.frames, seed=SEED)[0]
        # The official code adds a frame to as many phones.
        same = ours(profile, model.folder, prompt.mel, passage.ids, passage.frames + 1)
        start = prompt.mel.shape[1]
        results["differences"][f"bundled, {name}"] = (mel - same)[:, start:].abs().max().item()


def refusals(place: Path, results: dict) -> None:
    """Record the refusals of profiles that must not be applied."""
    path = small_release(place / "right", "v1")
    profile = profile_of(path, steps=7, table="yes")
    out = place / "refused"
    module = exported(profile, path.parent, out)
    right, description = official_model(path), json.loads((out / "f5_tts.json").read_text())

    def refuse(name: str, attempt: Callable[[], object]) -> None:
        try:
            attempt()
            results["refusals"][name] = ""
        except ValueError as error:
            results["refusals"][name] = str(error)

    def applied(change: Callable[[dict], None], model: nn.Module = right) -> None:
        changed = copy.deepcopy(description)
        change(changed)
        module.apply(model, changed)

    other = official_model(path)
    with torch.no_grad():
        other.transformer.transformer_blocks[1].ff.ff[2].weight.add_(1e-3)
    refuse("weights", lambda: module.apply(other, out))
    refuse("version", lambda: module.apply(official_model(place / "v0" / "model.safetensors"), out))
    refuse("layers", lambda: applied(lambda one: one["table"]["actions"].pop()))
    refuse("table's grid", lambda: applied(lambda one: one["table"]["actions"][0].pop()))
    refuse("package's grid", lambda: applied(lambda one: one["times"].__setitem__(3, 0.5)))
    refuse("kind", lambda: applied(lambda one: one.pop("kind")))
    refuse("no model", lambda: module.apply(nn.Linear(2, 2), out))
    results["restored"] &= not module.is_applied(right)
    module.apply(right, out)
    refuse("twice", lambda: module.apply(right, out))
    prompt, ids = torch.randn(1, PROMPT, 100), torch.randint(0, VOCABULARY, (1, 30))
    refuse("duplicate_test", lambda: theirs(right, prompt, ids, duplicate_test=True))
    refuse("half precision is the same checkpoint", lambda: module.apply(official_model(path).bfloat16(), out))


def average_velocity(place: Path, results: dict) -> None:
    """Weights with an embedding of intervals in the official class, by the code of the guide."""
    from f5_tts.model.backbones.dit import DiT as OfficialDiT

    guide = resource("docs", "average-velocity.md").read_text(encoding="utf-8")
    code: dict = {}
    exec(re.search(r"```python\n(.*?)```", guide, re.DOTALL)[1], code)
    arch, evaluations = SMALL | VERSIONS["v1"], 3
    torch.manual_seed(3)
    ours = DiT(BackboneConfig.from_official("DiT", arch, VOCABULARY, "test"))
    add_interval(ours)
    for parameter in ours.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.3)
    ours = ours.eval().requires_grad_(False)
    official = OfficialDiT(**arch, mel_dim=100, text_num_embeds=VOCABULARY).eval()
    code["take_intervals"](official, evaluations)
    official.load_state_dict(ours.state_dict(), strict=True)
    noise, prompt = torch.randn(1, FRAMES, 100), torch.randn(1, FRAMES, 100)
    prompt[:, PROMPT:] = 0
    ids = torch.randint(0, VOCABULARY, (1, 12))
    times = sampling_grid(evaluations, "uniform", -1.0)[:-1]
    run = ours.begin(prompt, ids, times, guided=False)
    for number, time in enumerate(times):
        theirs = official(noise, prompt, ids, torch.tensor([float(time)]))
        results["intervals"].append(float((theirs - ours.velocity(noise, number, run)).abs().max()))
        # The interval counts: the same evaluation as a step of no length is another.
        assert (theirs - ours.velocity(noise, (number + 1) % evaluations, run)).abs().max() > 1e-2


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    results = {"differences": {}, "changed": {}, "refusals": {}, "restored": True, "threads": [], "intervals": []}
    output, sys.stdout = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory() as place, torch.no_grad():
        for part in (random_weights, guidance_free_weights, refusals, *workload([bundled], []), average_velocity):
            part(Path(place), results)
    print(json.dumps(results), file=output)


if __name__ == "__main__":
    main()
