"""The embedded judge: how it is made."""

from __future__ import annotations

from pathlib import Path

import click

from dialbench.cli.options import POSITIVE, data_option, declared, print_message, print_text
from dialbench.scoring.options import ScoringOptions


@click.group()
def nli() -> None:
    """Make or examine the NLI model that judges utterance entailment."""


@nli.command()
@data_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default="nli",
    show_default=True,
    help="Folder to write checkpoints, weights and the model card to.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the training run.")
@click.option(
    "--dialogue-pairs",
    type=POSITIVE,
    default=500,
    show_default=True,
    help="Pairs made from DailyDialog, of each label, in the first of three stages.",
)
def train(data: Path | None, out: Path, seed: int, dialogue_pairs: int) -> None:
    """Train the adaptation of the embedded judge and write it with its card.

    Takes about an hour and a half of one core. The same command again goes on where this one
    stopped. `--nli OUT` judges with what was made.
    """
    from dialbench.files.folders import data_folder
    from dialbench.nli.training.make import train as train_judge

    folder = data_folder(data)
    for path in train_judge(folder, out, seed=seed, dialogue=dialogue_pairs, tell=print_message):
        print_text(str(path))


@nli.command()
@data_option
@declared(ScoringOptions, "nli")
def examine(data: Path | None, nli: str | None) -> None:
    """Examine a judge on what it was not taught, and print what comes out as Markdown.

    Held-out sets, probes, dialogues, constant responses, and how far it follows people's ratings.
    """
    from dialbench.files.folders import data_folder
    from dialbench.nli.training.make import examine as examine_judge

    print_text(examine_judge(nli, data_folder(data), print_message).rstrip())
