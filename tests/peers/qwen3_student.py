"""What the official class says with a folder of Qwen3-TTS, in the package's environment: prints its layers, the weights
that it missed or ignored, and its likeliest codes, as JSON."""

import json
import sys
from pathlib import Path

import torch

from paretone.models.qwen3_tts.checkpoint import OfficialFolder
from tests.peers import official

MOST = 60
"""Frames."""


def main(folder: Path, text: str, speaker: str) -> None:
    official.import_models(official.QWEN3_TTS)
    from qwen_tts.core.models import configuration_qwen3_tts as configuration
    from qwen_tts.core.models import modeling_qwen3_tts as modeling

    config = configuration.Qwen3TTSConfig.from_pretrained(folder)
    # Not by the class's own function, which would read the speech tokenizer as well: that needs sox.
    read = modeling.Qwen3TTSPreTrainedModel.from_pretrained.__func__
    made = modeling.Qwen3TTSForConditionalGeneration
    model, found = read(made, folder, config=config, output_loading_info=True, dtype=torch.float32)
    ids = torch.tensor([OfficialFolder.read(folder).tokenizer().ids(text)])
    greedy = {"do_sample": False, "subtalker_dosample": False, "repetition_penalty": 1.0}
    codes = model.eval().generate(
        input_ids=[ids],
        instruct_ids=[None],
        languages=["auto"],
        speakers=[speaker],
        non_streaming_mode=True,
        max_new_tokens=MOST,
        eos_token_id=config.talker_config.codec_eos_token_id,
        **greedy,
    )
    faults = [str(one) for kind in found.values() for one in kind]
    said = {"layers": len(model.talker.model.layers), "faults": faults, "codes": codes[0][0].flatten().tolist()}
    print(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
