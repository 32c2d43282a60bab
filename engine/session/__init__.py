"""What a front end talks to: messages, the engine thread, and the executor that carries commands out."""
