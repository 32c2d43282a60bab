"""The recipes that make the bundled models only from speech of ``flite``, and natural ones from that of ``hibari-tts``.

    paretone train vocos-mini --minutes 40 --work runs/vocos-mini
    paretone train speech-tokenizer --minutes 20 --work runs/speech-tokenizer
    paretone train lm-mini --minutes 50 --work runs/lm-mini --codec runs/speech-tokenizer/export
    paretone train codec-mini --minutes 9 --work runs/codec-mini
    paretone train omni-mini --minutes 32 --work runs/omni-mini --codec runs/codec-mini/export
    paretone train voice-corpus --work runs/voice-corpus
    paretone train voice-vocoder --minutes 34 --half --work runs/voice-vocoder
    paretone train voice-f5 --minutes 200 --half --work runs/voice-f5
    paretone train voice-megatts3 --minutes 100 --half --work runs/voice-megatts3
    python -m engine.training.recipes.manifest --manifest runs/manifest/flite.csv --corpus runs/corpus

The last one writes flite's corpus as a manifest, for training from recordings such as the CFG-free versions of
``f5-mini``. Ctrl-C leaves a checkpoint, and ``--resume`` continues from it. Needs the program flite or the ``voice``
extra, and for judging the ``evaluate`` extra. Next to each shipped model lies the log of its run, ``training.jsonl``;
its first line says whose weights ship.
"""
