"""LLaSA as it is trained: a conversation in which the user asks for a text and the assistant answers in speech.

``train_tts.py`` of the training code. There the mark that begins speech and the end of the assistant's turn are
predicted as well; neither is ever drawn here, so that the head which is trained has no rows for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from paretone.models.families.training_layout import IGNORED, TrainingRow
from paretone.models.llasa.prompt import rendered
from paretone.models.llasa.tokenizer import LlasaTokenizer


def training_row(tokenizer: LlasaTokenizer, text: str, speech: Sequence[int]) -> TrainingRow:
    """The prompt for ``text``, and ``speech`` up to its end. Raises :class:`paretone.errors.TextError` as
    :func:`paretone.models.llasa.prompt.rendered` does."""
    prompt = tokenizer.ids(rendered(text))
    ids = (*prompt, *(tokenizer.first_code + code for code in speech))
    # The last of the prompt is what the first code follows; the end follows all codes.
    return TrainingRow(ids, (IGNORED,) * (len(prompt) - 1) + (*speech, tokenizer.codes))
