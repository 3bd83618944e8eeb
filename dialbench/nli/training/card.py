"""What there is to know about a trained adaptation, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from dialbench.nli.adaptation import ALPHA, RANK
from dialbench.nli.judge import LABELS
from dialbench.nli.training import calibration
from dialbench.nli.training.calibration import Offsets
from dialbench.nli.training.curriculum import PARTS, Curriculum
from dialbench.nli.training.examination import CONTEXTS

_TEXT = """\
# The embedded judge of utterance entailment

MiniLM-L6 (all-MiniLM-L6-v2, Apache-2.0) as a cross-encoder of premise and hypothesis, with a
low-rank adaptation of every linear layer (rank {rank}, alpha {alpha}) and a classifier on top.
`{file}` holds the {parameters:,} learned numbers, matrices in float16; the base weights come with
the extra `nli`, and the adaptation is merged into them at load. sha256 of the base
`{base}`,
of the adaptation
`{sha256}`.

Values of `ue` with this judge do not compare with those of another one.

## Training

    {command}

By torch {torch} on {threads} thread of a CPU with {cpu} and {dtype}. With
another torch or processor the last bits of a sum, and so the weights, may differ. Three stages, of
each one pass over those pairs that have at most {longest} pieces, {batch_size} a step, those of
about one length together. Each later stage has pairs of the first four collections again, other
ones than the stage before, and pairs that are made. Adam; the rate rises to its highest over
{warmup:.0%} of the steps and falls in a straight line to zero; gradients are clipped at {clip};
nothing drops out. The adaptation is the mean of what was learned by the end of each stage,
in parts of {parts}.

{stages}

{taught}

The last row is made from the turns of DailyDialog's training split, {dialogue} pairs of each label:
turns of two dialogues (neutral); a turn with itself or one of its statements (entailment); a
statement with its negation (contradiction). Of a collection, pairs are left out that share a
sentence with a premise of a held-out set. What is made for the later stages:

{made_pairs}

No text is part of the adaptation; whether the licences of texts bind what was learned from them is
for its user to judge.

## Calibration

{calibrated}

{findings}"""

_CALIBRATED = """\
Added to the logits: {entailment:+g} for entailment, {contradiction:+g} for contradiction. Of the
pairs from {tried_entailment} and
{tried_contradiction}, in steps of {step}, this one lets `ue` follow people best, by
the mean of Spearman's rho over the three sets of GRADE, among those that keep the UE of turns of
other dialogues and of commonplaces within {level} of 0, that of denials below {denied}, the
accuracy on SNLI dev within {losses}, and true next turns above turns of
other dialogues by more than chance. Looked at on {contexts:,} contexts of DailyDialog's validation
split, of another draw than those below."""
_UNCALIBRATED = """\
None: no pair of offsets from {tried_entailment} for entailment and
{tried_contradiction} for contradiction, in steps of {step}, keeps the UE of turns of other
dialogues and of commonplaces within {level} of 0, that of denials below {denied}, and the
accuracy on SNLI dev within {losses}, on {contexts:,} contexts of DailyDialog's validation split."""


def card(
    curriculum: Curriculum,
    short: Sequence[int],
    offsets: Offsets | None,
    findings: str,
    facts: dict[str, object],
) -> str:
    """The card of an adaptation.

    Args:
        curriculum: what it was taught.
        short: pairs of each stage that were short enough.
        offsets: of its logits; None if none keep the bounds.
        findings: what it makes of what it was not taught, as Markdown.
        facts: base, file, sha256, parameters, command, torch, cpu, dtype, threads.
    """
    first, *_ = curriculum.stages
    ((_, dialogue),) = first.made
    return _TEXT.format(
        rank=RANK,
        alpha=ALPHA,
        parts=", ".join(f"{part:g}" for part in PARTS),
        stages="\n".join(_stage_table(curriculum, short)),
        taught="\n".join(_source_table(curriculum)),
        dialogue=len(dialogue) // len(LABELS),
        made_pairs="\n".join(_made_table(curriculum)),
        calibrated=_calibrated(offsets),
        findings=findings,
        **asdict(first.settings),
        **facts,
    )


def _calibrated(offsets: Offsets | None) -> str:
    return (_CALIBRATED if offsets else _UNCALIBRATED).format(
        tried_entailment=_range(calibration.ENTAILMENT),
        tried_contradiction=_range(calibration.CONTRADICTION),
        step=calibration.STEP,
        level=calibration.LEVEL,
        denied=calibration.DENIED,
        losses=" or, if none does, ".join(f"{loss:.1%}" for loss in calibration.LOSSES),
        contexts=CONTEXTS,
        **asdict(offsets or Offsets()),
    )


def _range(tried: Sequence[float]) -> str:
    return f"{tried[0]:+g} to {tried[-1]:+g}"


def _stage_table(curriculum: Curriculum, short: Sequence[int]) -> Iterator[str]:
    yield "| stage | of collections | made | short enough | highest rate | seed |"
    yield "|---|---|---|---|---|---|"
    for number, (stage, pairs) in enumerate(zip(curriculum.stages, short, strict=True), 1):
        labelled, settings = len(stage.labelled), stage.settings
        made, rate = len(stage.pairs) - labelled, settings.learning_rate
        yield f"| {number} | {labelled:,} | {made:,} | {pairs:,} | {rate:g} | {settings.seed} |"


def _source_table(curriculum: Curriculum) -> Iterator[str]:
    yield "| file | collection | licence | pairs |"
    yield "|---|---|---|---|"
    for source, count in curriculum.counts:
        yield f"| `{source.name}` | {source.title} | {source.licence} | {count:,} |"
    for title, pairs in curriculum.stages[0].made:
        yield f"| | {title} | CC BY-NC-SA 4.0 | {len(pairs):,} |"


def _made_table(curriculum: Curriculum) -> Iterator[str]:
    yield "| stage | pairs | number |"
    yield "|---|---|---|"
    for number, stage in enumerate(curriculum.stages[1:], 2):
        for title, pairs in stage.made:
            yield f"| {number} | {title} | {len(pairs):,} |"
