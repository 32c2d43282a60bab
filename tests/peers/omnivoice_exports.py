"""Run by the official omnivoice package's own Python: exported profiles there, against the engine; prints JSON.

The official loading, text, loop and codec, with small random weights in the release's layout.
"""

import importlib.util
import json
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from paretone import cli
from paretone.setting.knobs import Values
from paretone.setting.profile import Profile
from paretone.setting.setting import UsedTechnique
from tests.engine.models.omnivoice.small_release import TEXT, load, setting, spoken, write_release
from tests.peers.official import OMNIVOICE, import_models

# The official trimming of silence needs a package that is not installed here; it comes after the codes.
CASES: dict[str, tuple[Values, dict[str, object]]] = {
    "all options": (
        Values(),
        {
            "steps": 7,
            "guidance": 1.3,
            "shift": 0.4,
            "layer_penalty": 2.0,
            "position_temperature": 3.0,
            "class_temperature": 0.7,
            "speed": 1.2,
            "language": "en",
            "instruct": "female, low pitch",
        },
    ),
    "one branch, fixed order": (Values(), {"steps": 4, "guidance": 0.0, "position_temperature": 0.0, "duration": 2.0}),
    "fewer steps": (Values(steps=3, shift=0.2), {"steps": 9}),
}
"""Knobs of a technique with fewer steps, and options."""
SEED = 11


def official_model(root: Path) -> Any:
    """The official model, loaded by its own ``from_pretrained``; its tokenizers from the release's files."""
    import_models(OMNIVOICE)
    from omnivoice.models import omnivoice
    from transformers import PreTrainedTokenizerFast

    # What the release's other files say of tokenizers is not in the small one.
    model = omnivoice.OmniVoice.from_pretrained(str(root), train=True).eval()
    model.text_tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(root / "tokenizer.json"))
    codec = omnivoice.HiggsAudioV2TokenizerModel
    model.audio_tokenizer = codec.from_pretrained(str(root / "audio_tokenizer")).eval()
    model.sampling_rate = 24_000
    model.duration_estimator = omnivoice.RuleDurationEstimator()
    return model


def exported(profile: Profile, out: Path) -> ModuleType:
    """Export the profile, and import the module that the export wrote."""
    out.mkdir()
    profile.save(out / "given.json")
    arguments = ["export", "--target", "omnivoice", "--profile", str(out / "given.json"), "--out", str(out)]
    if cli.main([*arguments, "--quiet"]):
        raise SystemExit(1)
    spec = importlib.util.spec_from_file_location("paretone_omnivoice", out / "paretone_omnivoice.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flags() -> list[str]:
    """Those of the package's own command."""
    (package,) = importlib.util.find_spec("omnivoice").submodule_search_locations
    return re.findall(r'"(--\w+)"', (Path(package) / "cli" / "infer.py").read_text(encoding="utf-8"))


def refused(module: ModuleType, *given: object) -> str:
    try:
        module.apply(*given)
    except ValueError as error:
        return str(error)
    return ""


def main() -> None:
    torch.set_num_threads(1)
    output, sys.stdout = sys.stdout, sys.stderr
    results: dict[str, dict] = {"codes": {}, "repeated": {}, "refusals": {}}
    with tempfile.TemporaryDirectory() as place, torch.inference_mode():
        root = write_release(Path(place) / "OmniVoice")
        ours, theirs = load(root), official_model(root)
        loop, codes = theirs._generate_iterative, []

        def listening(task: object, config: object) -> list:
            codes.append(loop(task, config)[0])
            return [codes[-1]]

        theirs._generate_iterative = listening
        for name, (knobs, options) in CASES.items():
            chosen = setting(seed=SEED, post_process=False, **options)
            if knobs:
                chosen = setting(UsedTechnique("fewer_steps", knobs), seed=SEED, post_process=False, **options)
            out = Path(place) / name
            module = exported(Profile.of(chosen, ours.info), out)
            module.apply(theirs, out)
            first, second = (theirs.generate(TEXT)[0] for _ in range(2))
            module.remove(theirs)
            own = spoken(ours, chosen)
            (passage,) = own.trace.demasking.passages
            results["codes"][name] = [np.asarray(passage.codes).tolist(), codes[-1].tolist()]
            results["repeated"][name] = bool(np.array_equal(first, second))
        module.apply(theirs, out)
        theirs.generate(TEXT, num_step=2)
        results["overridden"] = theirs.generate(TEXT, num_step=2)[0].shape[0]
        results["refusals"]["twice"] = refused(module, theirs, out)
        module.remove(theirs)
        results["flags"] = flags()
        results["restored"] = "generate" not in vars(theirs)
        results["refusals"]["no model"] = refused(module, torch.nn.Linear(2, 2), out)
        description = json.loads((out / "omnivoice.json").read_text())
        results["refusals"]["kind"] = refused(module, theirs, description | {"kind": "other"})
        results["refusals"]["schema"] = refused(module, theirs, description | {"schema": 2})
        results["refusals"]["precision"] = refused(module, theirs, description | {"precision": "int3"})
        results["loading"] = str(module.loading(description | {"precision": "bfloat16"})["dtype"])
    print(json.dumps(results), file=output)


if __name__ == "__main__":
    main()
