"""CosyVoice 3 (Fun-CosyVoice3-0.5B): what differs from CosyVoice 2."""
