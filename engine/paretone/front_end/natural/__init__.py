"""The English text front end of natural speech: what people type to phones, and phones to lengths."""
