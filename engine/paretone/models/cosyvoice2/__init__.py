"""CosyVoice 2: a speech language model, a flow from its tokens to mel frames, a vocoder."""
