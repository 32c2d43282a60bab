from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import EncodecModel

from paretone.audio.mel import resample_prompt
from paretone.audio.recording import read_recording
from paretone.front_end.speakable import chunks
from paretone.models.base import OfficialIds
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.language_network import DraftTensors, HuggingFaceNames, LanguageNetwork, TokenModel
from paretone.models.families.passages import Decoded, Passages, TokenDecoder
from paretone.models.families.voices import transcript_of
from paretone.models.files.checkpoints import Shards, loaded_strictly, read_weights
from paretone.models.files.config_file import ConfigFile
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.sampling.autoregressive import Request
from paretone.sampling.tokens import Greedy, Nucleus

TEXTS, LETTERS, LONGEST = "texts", 14, 15.0
Prompt, Passage = namedtuple("Prompt", "transcript codes notes"), namedtuple("Passage", "text ids expected")


class Whole(TokenDecoder):
    def __init__(self, codec):
        self._codec, self._codes = codec, []

    def push(self, codes):
        self._codes.extend(codes)
        return np.zeros(0, np.float32)

    def finish(self):
        return self.whole(self._codes).samples

    def whole(self, codes):
        grid = torch.tensor([[[list(codes)]]], dtype=torch.long, device=self._codec.device)
        with torch.inference_mode():
            return Decoded(
                self._codec.decode(grid, [None])[0][0, 0].cpu().numpy() if codes else np.zeros(0, np.float32)
            )


class CodeLm(LanguageSpeech):
    def __init__(self, info, folder, codec):
        super().__init__(info, folder.network(), folder.rate, folder.student, folder.draft)
        self._folder, self._codec = folder, codec

    def first_run(self, network):
        tokens = network.tokens
        tokens.logits(tokens.transformer(tokens.embed([[0]]), tokens.cache(1)))

    def prepare(self, text, voice, options, check, seed=None):
        recording, rate = read_recording(voice.audio), self.info.sample_rate
        samples = resample_prompt(torch.from_numpy(recording.samples), recording.sample_rate, rate)
        with torch.inference_mode():
            heard = self._codec.encode(samples[None, None].to(self._codec.device)).audio_codes
        prompt = Prompt(transcript_of(voice), heard[0, 0, 0].tolist(), ())
        passages = []
        for piece in chunks(text, lambda part: len(part) / LETTERS, LONGEST):
            ids = self._folder.tokenizer.encode(f"{prompt.transcript} {piece}<|speech|>").ids
            passages.append(Passage(piece, ids, max(1, round(len(piece) / LETTERS * self.token_rate))))
        return prompt, Passages(tuple(passages))

    def request(self, network, passage, prompt, options):
        texts = network.tables[TEXTS]
        ids = torch.tensor(self.official_prompt(passage, prompt), device=texts.device)
        return Request(texts[ids][None], torch.arange(len(ids)), len(ids), 0, 4 * passage.expected)

    def token_sampler(self, passage, prompt, options):
        if not options["temperature"]:
            return Greedy()
        values = (options[name] for name in ("temperature", "top_k", "top_p", "repetition_penalty"))
        return Nucleus(*values, tuple(prompt.codes))

    def decoder(self, prompt, seed, options):
        return Whole(self._codec)

    @property
    def official_ids(self):
        return OfficialIds(len(self.own.tables[TEXTS]), *self._folder.ids)

    def official_prompt(self, passage, prompt):
        return (*passage.ids, *(code + self._folder.first_code for code in prompt.codes))


class Folder:
    def __init__(self, place: Path, device, check):
        file = ConfigFile.read(place / "speech.json")
        self.first_code, self.codes, self.stop = (
            file.number(name, least=0) for name in ("first_code", "codes", "stop")
        )
        self.ids = self.first_code, self.codes, (self.stop,)
        self.names = HuggingFaceNames(torch.tensor([*range(self.first_code, self.first_code + self.codes), self.stop]))
        self.config = CausalConfig.read(ConfigFile.read(place / "config.json"))
        self.tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
        self.shards, self.device, self.check, self.rate = Shards.find(place), device, check, 0.0

    def network(self):
        return self._made(self.shards.read(check=self.check)[0], self.config, self.shards.where)

    def student(self, student):
        config = replace(self.config, layers=student.depth)
        return self._made(read_weights(Path(student.path)), config, student.path)

    def draft(self, draft):
        return DraftTensors.read(draft, self.names.layers, self.names.head, self.names.spoken, self.check)

    def _made(self, weights, config, where):
        parts = self.names.parts({name: value.float() for name, value in weights.items()})
        transformer = loaded_strictly(lambda: CausalTransformer(config), parts.transformer, where)
        tokens = TokenModel(transformer, self.names.spoken(parts.embedding), parts.head, codes=self.codes)
        return LanguageNetwork(tokens.eval().to(self.device).optimised(), {TEXTS: parts.embedding.to(self.device)})


def load(request):
    folder = Folder(request.place, request.device, request.check)
    codec = EncodecModel.from_pretrained(request.place / "codec", local_files_only=True).to(request.device).eval()
    folder.rate = codec.config.frame_rate
    found = {"checkpoint": folder.shards.where, "fingerprint": folder.shards.fingerprint(request.check)}
    size = folder.config.layers * folder.config.weights_of_layer
    about = {"layers": folder.config.layers, "branches": 1, "parameters": size, "text_front_end": "tokenizer"}
    info = request.info(**found, **about, sample_rate=codec.config.sampling_rate)
    return CodeLm(info, folder, codec)
