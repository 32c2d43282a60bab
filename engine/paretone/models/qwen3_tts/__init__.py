"""Qwen3-TTS (12 Hz): a talker, a predictor of the codes within a frame, a speech tokenizer, a speaker encoder."""
