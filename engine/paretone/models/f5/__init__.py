"""F5-TTS and E2-TTS: architectures, checkpoints, the official way of reading, and the adapter that speaks."""
