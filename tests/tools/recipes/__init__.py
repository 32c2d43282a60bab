"""The recipes that make the bundled models only from speech of ``hibari-tts``.

    paretone train voice-corpus --work runs/voice-corpus
    python -m tests.tools.recipes voice-vocoder --minutes 34 --half --work runs/voice-vocoder
    python -m tests.tools.recipes voice-f5 --minutes 200 --half --work runs/voice-f5
    python -m tests.tools.recipes voice-megatts3 --minutes 100 --half --work runs/voice-megatts3
    python -m tests.tools.recipes voice-tokenizer --minutes 20 --half --work runs/voice-tokenizer
    python -m tests.tools.recipes voice-codec --minutes 20 --half --work runs/voice-codec
    python -m tests.tools.recipes voice-lm --minutes 48 --half --work runs/voice-lm
    python -m tests.tools.recipes voice-omni --minutes 55 --half --work runs/voice-omni

Ctrl-C leaves a checkpoint, and ``--resume`` continues from it. Needs the ``voice`` extra. Next to each shipped model
lies the log of its run, ``training.jsonl``; its first line says whose weights ship.
"""
