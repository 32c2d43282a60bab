"""Base of all speech language models: text and a voice to tokens, one after another, and audio as they arrive.

``ops_ratio`` of its takes is backbone operations over those of plain decoding of the same tokens by the model itself:
all matrix and attention products of the transformers and their heads, for the prompt and every token read, including
the draft's and rejected tokens. The voice's part of the prompt counts for every text. Of the decoder of tokens to audio
only a flow's evaluations count, over those of the same flow without techniques. Speculative decoding is therefore above
1: it computes more, in fewer passes. A student is below 1.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from paretone import device as devices
from paretone.audio.cross_fade import CrossFader, PassageJoiner
from paretone.errors import SettingError, enough_memory
from paretone.last_used import LastUsed
from paretone.models.base import ModelInfo, OfficialIds, OfficialPrompt, Script, Voice
from paretone.models.families import parts
from paretone.models.families.evaluations import FlowInternals
from paretone.models.families.language_network import (
    DecodingLoop,
    FeatureDrafter,
    LanguageNetwork,
    LanguageNetworks,
    Networks,
    ReadDraft,
    ReadStudent,
    TokenModel,
)
from paretone.models.families.pacing import Pace
from paretone.models.families.passages import (
    LanguagePassage,
    Prompt,
    Spoken,
    TokenDecoder,
    Uttered,
    cost_of,
    largest_difference,
)
from paretone.models.families.speech import Account, Speech
from paretone.models.families.together import Ask
from paretone.models.files.trained_weights import find_language_weights, places_of
from paretone.observer import SILENT, Check, Observer, StepReport
from paretone.reading import shown
from paretone.sampling.autoregressive import Cycle, Decoding, Request, RunawayGuard, decode, guarded
from paretone.sampling.cache import Limits
from paretone.sampling.tokens import TokenSampler, Uniforms
from paretone.setting.knobs import Values
from paretone.setting.plan import LanguagePlan
from paretone.setting.take import DecodingCycle, DecodingTrace, Trace


def plain_operations(model: TokenModel, prompt: int, cycles: Sequence[Cycle]) -> float:
    """Operations of ``model`` for reading ``prompt`` elements and decoding ``cycles``, stop and frames one by one."""
    given = sum(len(cycle.tokens) for cycle in cycles) + any(cycle.stopped for cycle in cycles)
    frames = sum(len(cycle.tokens) for cycle in cycles) * model.frame_operations
    passes = sum(model.operations(1, prompt + done, 1) for done in range(given - 1))
    return model.operations(prompt, 0, 1) + passes + frames


def spent_operations(
    target: TokenModel, draft: TokenModel | None, prompt: int, cycles: Sequence[Cycle], draft_prompt: int = 0
) -> float:
    """Operations of ``cycles``: the target's over the ``prompt`` elements and every token that it read, the draft's
    likewise over its ``draft_prompt``."""
    spent, read, drafter_read, committed = 0.0, 0, 0, 0
    for cycle in cycles:
        # A stop id is never read; the element before the first new token always is.
        drafted = [one for one in cycle.drafted if one < target.codes]
        new = prompt + committed + len(drafted) - read
        spent += target.operations(new, read, len(drafted) + 1) + cycle.frame_operations
        if draft is not None and cycle.drafted:
            known = draft_prompt + committed
            spent += draft.operations(known - drafter_read, drafter_read, 1)
            spent += sum(draft.operations(1, known + place, 1) for place in range(len(cycle.drafted) - 1))
            drafter_read = known + len(cycle.drafted) - 1
        committed += len(cycle.tokens)
        read = min(prompt + committed - len(cycle.tokens) + len(drafted), prompt + committed - 1)
        drafter_read = min(drafter_read, draft_prompt + committed - 1)
    return spent


@dataclass(frozen=True)
class LanguageInternals:
    """The first passage of a synthesis and its decoding, for profiling."""

    networks: Networks
    plan: LanguagePlan
    request: Request
    draft_request: Request | None
    sampler: TokenSampler
    decoding: Decoding
    """The loop before its first cycle."""
    decoder: Callable[[], TokenDecoder]
    passages: int
    flow: Callable[[Sequence[int]], FlowInternals] | None = None
    """The decoder taken apart for given tokens, decoded at once, if it is a flow with a vocoder."""


REPORT_SECONDS = 0.05
"""Minimum interval between progress reports; tokens arrive faster than anyone can read."""


class TokenProgress:
    def __init__(
        self, observer: Observer, expected: Sequence[int], number: int, tokens_before: int, token_rate: float
    ) -> None:
        """``expected``: estimated tokens of each passage; ``number``: index of the running passage; ``tokens_before``:
        actual tokens of earlier passages; ``token_rate``: tokens per second."""
        self._observer, self._rate = observer, token_rate
        self._number, self._passages, self._expected = number, len(expected), expected[number]
        self._before, self._total = sum(expected[:number]), sum(expected)
        self._tokens_before, self._tokens = tokens_before, 0
        self._last = -REPORT_SECONDS

    def tell(self, cycle: Cycle) -> None:
        self._tokens += len(cycle.tokens)
        now = time.perf_counter()
        if now - self._last < REPORT_SECONDS and not cycle.stopped:
            return
        self._last = now
        # Speech longer than expected stays at the expected length; a stop counts as the expected length.
        reached = self._expected if cycle.stopped else min(max(self._tokens, 1), self._expected)
        self._observer.step(
            StepReport(
                self._number,
                self._passages,
                reached - 1,
                self._expected,
                cycle.draft_seconds + cycle.target_seconds,
                self._expected / self._rate,
                self._before,
                self._total,
                self._tokens_before + self._tokens,
            )
        )


PATIENCE = 4
"""Of decoders while several texts are spoken at once."""


@dataclass(frozen=True)
class _Script(Script):
    plan: LanguagePlan
    network: Networks
    passages: tuple[LanguagePassage, ...]
    patience: int = 1
    """Of its decoders."""


@dataclass(frozen=True)
class _Spoken(Spoken):
    cycles: tuple[DecodingCycle, ...]
    problem: str
    """Problem of the passage, as a sentence; ``""`` if it ended by itself."""
    draft_passes: int
    approximated: TokenDecoder | None = None
    """The decoder, if its streaming is not exact."""

    @property
    def tokens(self) -> int:
        return sum(len(cycle.tokens) for cycle in self.cycles)


class LanguageSpeech(Speech[_Script, _Spoken]):
    """A loaded speech language model. See :class:`paretone.models.base.SpeechModel`."""

    _script = _Script
    silent = "stopped immediately and said nothing"
    gains_on_one_thread = True  # Reading the weights limits a pass; a shared one reads them once for all texts.

    def __init__(
        self,
        info: ModelInfo,
        network: LanguageNetwork,
        token_rate: float,
        read_student: ReadStudent,
        read_draft: ReadDraft,
    ) -> None:
        """``token_rate``: tokens per second of speech. ``read_student`` loads a student's network, optimised and on the
        model's device; ``read_draft`` loads the tensors of a draft."""
        super().__init__(replace(info, token_rate=token_rate))
        self._networks = LanguageNetworks(network, read_student, read_draft, self._run_once)
        self._device = network.tokens.device
        self._recordings: LastUsed[LanguageNetwork] = LastUsed(2)  # The model's and its draft's.
        self.token_rate = token_rate

    # --- To be implemented by a model --------------------------------------------------------------------------------
    @abstractmethod
    def request(self, network: LanguageNetwork, passage: Any, prompt: Any, options: Values) -> Request:
        """Decoding request of a passage, embedded with the tables of ``network``, with its limits."""

    @abstractmethod
    def token_sampler(self, passage: Any, prompt: Any, options: Values) -> TokenSampler: ...

    @abstractmethod
    def decoder(self, prompt: Any, seed: int, options: Values) -> TokenDecoder:
        """A new decoder for the tokens of one passage."""

    @property
    @abstractmethod
    def official_ids(self) -> OfficialIds:
        """Its vocabulary for export."""

    @abstractmethod
    def official_prompt(self, passage: Any, prompt: Any) -> tuple[int, ...]:
        """Official ids of everything that :meth:`request` embeds."""

    def planned_decoder(self, prompt: Any, seed: int, plan: LanguagePlan, voice: Voice) -> TokenDecoder:
        return self.decoder(prompt, seed, plan.options)

    def ends(self, passages: Sequence[Any]) -> Sequence[int] | None:
        """End of each passage's last sound in samples, if known in advance."""
        return None

    def draft_prompt(self, prompt: Any) -> Prompt:
        """Part of ``prompt`` that the draft reads. Drafts only propose, so any part is correct: a shorter one is
        faster to read, but may be accepted less often."""
        return prompt

    def ready_voice(self, voice: Voice, observer: Observer) -> None:
        """Prepare parts of ``voice`` that later syntheses reuse."""

    # --- Networks ----------------------------------------------------------------------------------------------------
    @property
    def own(self) -> LanguageNetwork:
        return self._networks.own

    def networks(self, plan: LanguagePlan, observer: Observer = SILENT) -> Networks:
        """Networks of ``plan``, read and warmed up. Raises :class:`PlainError`."""
        return self._networks.of(plan, observer)

    def warm_up(self) -> None:
        self.first_run(self.own)

    def _run_once(self, network: LanguageNetwork) -> None:
        """:meth:`first_run`, and a draft in one call, whose code is compiled or read from disk then."""
        self.first_run(network)
        draft = network.tokens
        if isinstance(draft, FeatureDrafter) and draft.drafts_at_once:
            row, limits = draft.embed([0]), Limits(0, 0, -1, draft.codes, draft.rows - draft.codes)
            draft.drafts(row, row, draft.cache(2), torch.arange(1), [0.0], limits, (1.0, 1, 1.0))

    def look_for_weights(self, check: Check = lambda: None) -> ModelInfo:
        """Find new drafts, students and layer measurements; ``check`` may raise to cancel."""
        found = find_language_weights(places_of(self.info), self.info.fingerprint, check)
        self.info = replace(self.info, **vars(found))
        return self.info

    def make_ready(self, plan: LanguagePlan, observer: Observer = SILENT, voice: Voice | None = None) -> None:
        self.networks(plan, observer)
        if voice is not None:
            self.ready_voice(voice, observer)

    # --- For other programs ------------------------------------------------------------------------------------------
    @torch.inference_mode()
    def official_prompts(
        self, text: str, voice: Voice, plan: LanguagePlan, check: Check = lambda: None
    ) -> tuple[OfficialPrompt, ...]:
        """The prompt of each passage of ``text`` in ``voice``. Raises :class:`PlainError`."""
        prompt, prepared = self.prepare(text, voice, plan.options, check, plan.seed)
        exported = []
        for passage in prepared.passages:
            ids = self.official_prompt(passage, prompt)
            request = self.request(self.own, passage, prompt, plan.options)
            most = request.maximum if request.length is None else request.length
            positions = tuple(request.positions.tolist())
            assert len(positions) == len(ids) and request.first_position == positions[-1] + 1
            counted = positions == tuple(range(len(ids)))
            exported.append(OfficialPrompt(passage.text, ids, request.minimum, most, None if counted else positions))
        return tuple(exported)

    @torch.inference_mode()
    def heard(
        self, tokens: Sequence[int], text: str, voice: Voice, plan: LanguagePlan, check: Check = lambda: None
    ) -> np.ndarray:
        """Audio (n,) of speech ``tokens``, from 0, that say ``text`` in ``voice``. Raises :class:`PlainError`."""
        strange = next((one for one in tokens if not 0 <= one < self.own.tokens.codes), None)
        if strange is not None:
            raise SettingError(
                f"{shown(strange)} is not a speech token of {self.info.title}, which has those from 0 to "
                f"{self.own.tokens.codes - 1}; take off the id of the first one."
            )
        prompt, _ = self.prepare(text, voice, plan.options, check, plan.seed)
        decoder = self.planned_decoder(prompt, plan.seed, plan, voice)
        decoder.check = check
        return decoder.whole(tokens).samples

    # --- Speaking ----------------------------------------------------------------------------------------------------
    def _joiner(self, script: _Script) -> PassageJoiner:
        fade = float(script.options.get("cross_fade", 0.0))
        ends = self.ends(script.passages)
        return PassageJoiner(CrossFader(round(fade * self.info.sample_rate)), len(script.passages), ends)

    def _account(self, script: _Script, spoken: Sequence[_Spoken], pace: Pace) -> Account:
        passes = sum(len(one.cycles) for one in spoken)
        streaming = largest_difference(one.approximated for one in spoken)
        measured = replace(
            cost_of(spoken, pace),
            evaluations=passes + sum(one.draft_passes for one in spoken),
            tokens=sum(one.tokens for one in spoken),
            target_passes=passes,
            streaming_difference=None if streaming is None else streaming.level,
        )
        notes = (*self.graphs.notes(), *self._remarks(script, spoken))
        return measured, notes if streaming is None else (*notes, streaming.sentence)

    def decodings(self, script: _Script, check: Check = lambda: None) -> Iterator[tuple[Request, Decoding]]:
        """The backbone's work alone, passage by passage: the request, and the decoding loop before its first cycle."""
        for passage in script.passages:
            requests = self._requests(script, passage)
            yield requests[0], self._decoding(script, passage, requests, check)

    def internals(self, script: _Script, check: Check = lambda: None) -> LanguageInternals:
        """The first passage, for profiling by component. Raises :class:`PlainError`."""
        passage = script.passages[0]
        requests = self._requests(script, passage)
        return LanguageInternals(
            script.network,
            script.plan,
            *requests,
            self._sampler_of(script, passage),
            self._decoding(script, passage, requests, check),
            lambda: self.planned_decoder(script.prompt, script.seed, script.plan, script.voice),
            len(script.passages),
        )

    def _network(self, plan: LanguagePlan, voice: Voice, observer: Observer) -> Networks:
        networks, graphs = self.networks(plan), plan.launching.graphs
        if graphs is None:
            return networks
        self.graphs.bound(graphs)
        draft = networks.draft and self._recorded(networks.draft, graphs.bucket)
        return Networks(self._recorded(networks.target, graphs.bucket), draft)

    @property
    def spreads_texts(self) -> bool:
        # Where torch reads large weights on all threads, each group would read them again.
        return super().spreads_texts and self.own.tokens.fused_transformer.is_like()

    def shared(self, script: _Script, ask: Ask) -> _Script:
        networks = script.network
        draft = None if networks.draft is None else networks.draft.shared(ask)
        return replace(script, network=Networks(networks.target.shared(ask), draft), patience=PATIENCE)

    def _recorded(self, network: LanguageNetwork, bucket: int) -> LanguageNetwork:
        """``network`` with recorded passes; cached, because recordings belong to it. A draft on features stays as it
        is: its passes take the target's states, too."""
        if isinstance(network.tokens, FeatureDrafter):
            return network

        def make() -> LanguageNetwork:
            return LanguageNetwork(network.tokens.graphed(self.graphs, bucket), network.tables)

        return self._recordings.of((network.tokens, bucket), make)

    def _speak_passage(
        self, script: _Script, number: int, before: Sequence[_Spoken], pace: Pace, observer: Observer
    ) -> Generator[Uttered, None, _Spoken]:
        passage, seed = script.passages[number], script.seed
        decoder = self.planned_decoder(script.prompt, seed, script.plan, script.voice)
        decoder.patience, decoder.check = script.patience, observer.check
        expected = tuple(one.expected for one in script.passages)
        progress = TokenProgress(observer, expected, number, sum(one.tokens for one in before), self.token_rate)
        cycles: list[Cycle] = []

        def seen(start: float) -> Trace:
            return Trace(decoding=self._decoding_trace((tuple(map(_kept, cycles)),), (start,), (False,)))

        backbone_seconds = decoder_seconds = 0.0
        samples = 0
        began = time.perf_counter()
        memory = partial(enough_memory, self.info.device, f"a passage of about {passage.expected} speech tokens")
        with memory():
            requests = self._requests(script, passage)
            unguarded = self._decoding(script, passage, requests, observer.check)
        guard = RunawayGuard(self.token_rate, passage.expected)
        decoding = guarded(unguarded, guard)
        while True:
            with memory():
                cycle = next(decoding, None)
            if cycle is None:
                break
            backbone_seconds += time.perf_counter() - began
            cycles.append(cycle)
            progress.tell(cycle)
            began = time.perf_counter()
            ready = decoder.push(cycle.codes)
            if len(ready):
                devices.synchronise(self._device)
            decoder_seconds += time.perf_counter() - began
            if len(ready):
                samples += len(ready)
                yield Uttered(ready, seen)
            began = time.perf_counter()
        observer.check()
        began = time.perf_counter()
        rest = decoder.finish()
        decoder_seconds += time.perf_counter() - began
        samples += len(rest)
        yield Uttered(rest, seen)
        networks = script.network
        target, draft = networks.target.tokens, None if networks.draft is None else networks.draft.tokens
        # A draft on features reads the prompt's last element.
        prompt_tokens, draft_prompt_tokens = (1 if one is None else one.embedded.shape[1] for one in requests)
        return _Spoken(
            tuple(cycle.draft_seconds + cycle.target_seconds for cycle in cycles),
            decoder.mel,
            samples,
            backbone_seconds,
            decoder_seconds,
            spent_operations(target, draft, prompt_tokens, cycles, draft_prompt_tokens) + decoder.operations,
            plain_operations(self.own.tokens, prompt_tokens, cycles) + decoder.reference_operations,
            # A stop id among accepted drafts saves no pass.
            frozenset({"draft"} if any(min(one.accepted, len(one.tokens)) for one in cycles) else ()) | decoder.saved,
            tuple(map(_kept, cycles)),
            self._problem(cycles, guard),
            sum(len(cycle.drafted) for cycle in cycles),
            None if decoder.exact else decoder,
            vocoder_seconds=decoder.vocoder_seconds,
        )

    @torch.inference_mode()
    def _requests(self, script: _Script, passage: LanguagePassage) -> tuple[Request, Request | None]:
        target, draft, options = script.network.target, script.network.draft, script.options
        request = self.request(target, passage, script.prompt, options)
        if draft is None or isinstance(draft.tokens, FeatureDrafter):
            return request, None
        return request, self.request(draft, passage, self.draft_prompt(script.prompt), options)

    def _decoding(
        self, script: _Script, passage: LanguagePassage, requests: tuple[Request, Request | None], check: Check
    ) -> Decoding:
        networks, plan, request = script.network, script.plan, requests[0]
        sampler, uniforms = self._sampler_of(script, passage), Uniforms(script.seed)
        target, draft = networks.target.tokens, None if networks.draft is None else networks.draft.tokens
        for one in (target, draft):
            if one is not None:
                one.reach(request.first_position + request.maximum)
        if plan.decoding is None:
            return decode(target, request, sampler, uniforms, check)
        loop = DecodingLoop(target, draft, *requests, sampler, uniforms, check, self.memory, plan.acceptance)
        return parts.decoding(plan.decoding, loop)

    def _sampler_of(self, script: _Script, passage: LanguagePassage) -> TokenSampler:
        """Token sampler of a passage: the model's, or the plan's variant."""
        own = self.token_sampler(passage, script.prompt, script.options)
        return own if script.plan.sampler is None else parts.sampler(script.plan.sampler, own)

    def _problem(self, cycles: Sequence[Cycle], guard: RunawayGuard) -> str:
        if guard.found is not None:
            return f"{guard.found} Another seed may do better."
        if cycles and cycles[-1].stopped:
            return ""
        seconds = sum(len(cycle.tokens) for cycle in cycles) / self.token_rate
        return (
            f"Speech did not end by itself and was stopped after {seconds:.1f} s; what was spoken until then was kept. "
            "Another seed may do better."
        )

    def _remarks(self, script: _Script, spoken: Sequence[_Spoken]) -> list[str]:
        remarks = []
        for number, one in enumerate(spoken):
            where = f"Passage {number + 1} of {len(spoken)}: " if len(spoken) > 1 else ""
            if one.problem:
                remarks.append(f"{where}{one.problem}")
            elif not one.samples:
                remarks.append(
                    f"{where}the model stopped immediately, so {script.passages[number].text!r} is missing; "
                    "try another seed."
                )
        return remarks

    def _traced(self, trace: Trace, spoken: Sequence[_Spoken], starts: tuple[float, ...]) -> Trace:
        cycles, run_away = tuple(one.cycles for one in spoken), tuple(bool(one.problem) for one in spoken)
        return replace(trace, decoding=self._decoding_trace(cycles, starts, run_away))

    def _decoding_trace(
        self, passages: tuple[tuple[DecodingCycle, ...], ...], starts: tuple[float, ...], run_away: tuple[bool, ...]
    ) -> DecodingTrace:
        return DecodingTrace(self.token_rate, self.own.tokens.codes, passages, starts, run_away)


_KEPT = tuple(one.name for one in fields(DecodingCycle))


def _kept(cycle: Cycle) -> DecodingCycle:
    return DecodingCycle(**{name: getattr(cycle, name) for name in _KEPT})
