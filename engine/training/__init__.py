"""The recipes that make the bundled models from nothing but what ``flite`` says.

    python -m engine.training vocos-mini --minutes 40 --work runs/vocos-mini
    python -m engine.training f5-mini --minutes 60 --work runs/f5-mini
    python -m engine.training mel-codec --minutes 10 --work runs/mel-codec
    python -m engine.training megatts3-mini --minutes 30 --work runs/megatts3-mini --codec runs/mel-codec/export
    python -m engine.training.judging --models FOLDER
    python -m engine.training corpus --manifest runs/manifest/flite.csv --corpus runs/corpus

The last one writes the corpus for ``paretone train``, which made the CFG-free versions of ``f5-mini`` from it.
Ctrl-C leaves a checkpoint, and ``--resume`` goes on from it. Needs the program flite, and for judging the ``evaluate``
extra. Beside each shipped model lies the log of a run, ``training.jsonl``; its first line says whose weights ship.
"""
