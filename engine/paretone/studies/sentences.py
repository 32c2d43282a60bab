"""Sentences of studies. Torch-free."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace

from paretone.models.base import Utterance, Voice
from paretone.models.voices import with_folder
from paretone.setting.setting import Setting


@dataclass(frozen=True)
class StudySentence:
    """A text, its speaker, and a recording of a person saying it, if any."""

    text: str
    voice: Voice
    reference: str = ""
    """Path of the recording, or ``""``."""
    instruction: str = ""
    """For models with the option ``instruction``, in place of the setting's; ``""``: that of the setting."""

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits, equal for equal texts in equal voices; the user's own recordings are compared by
        path, so that studies of earlier versions continue."""
        named = [self.text, with_folder(self.voice), *([self.instruction] if self.instruction else [])]
        return hashlib.sha256(json.dumps(named, ensure_ascii=False).encode()).hexdigest()[:16]

    def instructed(self, setting: Setting) -> Setting:
        """``setting`` with the sentence's instruction, if its model follows any."""
        if not self.instruction or "instruction" not in setting.options:
            return setting
        return replace(setting, options=setting.options.replace(instruction=self.instruction))

    @property
    def utterance(self) -> Utterance:
        return Utterance(self.text, self.voice)
