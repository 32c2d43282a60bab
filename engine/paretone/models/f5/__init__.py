"""F5-TTS and E2-TTS: architectures, checkpoints, the official text front end, and the adapter."""
