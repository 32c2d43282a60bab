"""The bundled speech language model: a small Llama over the tokens of a small speech tokenizer."""
