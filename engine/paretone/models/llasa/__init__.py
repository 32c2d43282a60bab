"""LLaSA: a Llama that writes the codes of XCodec2, and XCodec2's decoder, which turns them into 16 kHz speech."""
