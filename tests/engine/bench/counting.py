"""Counts, to show what a bench looks like."""

import argparse

from paretone.bench.report import Report
from paretone.measure.machine import describe

NAME = "counting"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--upto", type=int, default=2)


def run(arguments: argparse.Namespace) -> Report:
    rows = tuple({"number": number} for number in range(arguments.upto))
    return Report(NAME, len(rows), (0.0, len(rows)), "How far it counted.", rows, describe().to_json())
