"""DOM-Seq2Seq: a classifier of domains, a Seq2Seq for each domain, and the best of their responses.

Choudhary et al., "Domain Aware Neural Dialog System", baseline "DOM-Seq2Seq" of the AdaND paper
(section 4.1). Domains are k-means clusters of the training contexts' tf-idf vectors, as corpora
reach a system without labels; multinomial logistic regression on these vectors gives
P(domain | context). All generators start from one Seq2Seq (LSTM) trained on everything and go on
with their domain. Each answers, and the response with the highest
log P(domain | context) + log p(response | context) / |response| is given, EOS counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from torch import nn

from dialbench.adapter import Adapter, Card, Run, deadline_of_first
from dialbench.errors import SystemFailed
from dialbench.neural.data import Batch, Encoded, Ints, PackedSequences
from dialbench.neural.decoding import beam_search
from dialbench.neural.model import DialogueModel
from dialbench.neural.randomness import seed_of
from dialbench.neural.training import Trainer
from dialbench.records import Decoding, Split

from .blocks.bases import append_epoch, load_weights, require_trained_base, weights_of_base
from .seq2seq_lstm import LSTMAdapter, LSTMConfig, LSTMModel, LSTMTrainer, Seq2SeqLSTM
from .text_models.domains import Domains


@dataclass(frozen=True)
class DOMSeq2SeqConfig(LSTMConfig):
    """The domains; further options as of `LSTMConfig`.

    Attributes:
        domains: how many there are; DailyDialog's authors name ten topics.
        features: words and pairs of words that the classifier sees.
    """

    domains: int = 10
    features: int = 50_000  # F

    positive: ClassVar[tuple[str, ...]] = ("domains", "features")


class DOMSeq2SeqModel(DialogueModel):
    """A generator for each domain; they are trained and answer one by one."""

    def __init__(self, config: DOMSeq2SeqConfig, vocabulary: int, domains: int) -> None:
        super().__init__()
        # p(r | c, d)
        self.generators = nn.ModuleList(LSTMModel(config, vocabulary) for _ in range(domains))


class DOMSeq2Seq(LSTMAdapter):
    """Seq2Seq by domain."""

    name = "dom-seq2seq"
    card = Card(
        title="DOM-Seq2Seq",
        family="recurrent",
        summary="an LSTM encoder-decoder for each domain; the best of their responses is given",
        paper="Choudhary et al., Domain Aware Neural Dialog System",
        year=2017,
    )
    Config = DOMSeq2SeqConfig
    config: DOMSeq2SeqConfig
    domains: Domains | None = None

    @classmethod
    def starts_from(cls, config: Any) -> type[Adapter] | None:
        """The generator of all domains."""
        return Seq2SeqLSTM

    @classmethod
    def supports(cls, decoding: Decoding) -> bool:
        """Greedy and beam, whose responses have a probability to rank them by."""
        return decoding.method in ("greedy", "beam")

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model; fewer domains where the contexts gave no more."""
        domains = self.config.domains if self.domains is None else len(self.domains)
        return DOMSeq2SeqModel(self.config, size, domains)

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Finds the domains, and trains a generator for each.

        The history is that of the training that all start from and one epoch more, at which each
        response of `valid` is as likely as its domain's generator finds it.
        """
        base = require_trained_base(self.name, run.base, Seq2SeqLSTM)
        self.vocabulary = base.vocabulary
        self.examples = data = self._encode(train)
        heldout = self._encode(valid)
        c, seed = self.config, seed_of(run.seed, "domains")
        # (examples,)
        self.domains, domain_of_example = Domains.fit(data.source, c.domains, c.features, seed)
        # argmax_d P(d | context), (examples,)
        domain_of_heldout = self.domains.logs(heldout.source).argmax(1).numpy()
        model = cast(Any, self._new_model(run))
        loss_sum = tokens = 0.0
        remaining = len(model.generators)
        for domain, generator in enumerate(model.generators):
            # every generator starts as the base
            load_weights(generator, weights_of_base(base, self))
            parts = (
                _of_domain(data, domain_of_example.numpy(), domain),
                _of_domain(heldout, domain_of_heldout, domain),
            )
            # target tokens of this domain
            size = float(heldout.target.lengths[domain_of_heldout == domain].sum())
            # What one generator leaves of its share of the time, the others have.
            stage = replace(run, deadline=deadline_of_first(run.deadline, remaining - domain))
            # nats over the tokens of this domain
            loss_sum += size * self._train(generator, *parts, stage, domain)
            tokens += size
        loss = loss_sum / tokens  # each response as its own domain's generator finds it
        self.history = append_epoch(base.history, {"valid_loss": loss, "valid_nll": loss})
        run.progress.warn(
            f"its {len(self.domains)} domains are k-means clusters of the tf-idf vectors of"
            " training contexts, since the corpus gives no labels"
        )

    def trainer(self, model: DialogueModel, train: Encoded, valid: Encoded, run: Run) -> Trainer:
        """As of Seq2Seq (LSTM), over the updates that this part of the examples has a right to."""
        updates, whole = self.config.epoch_updates, self.examples or train
        # rounded up
        config = replace(self.config, epoch_updates=-(-updates * len(train) // len(whole)))
        return LSTMTrainer(model, train, valid, config, run)

    def _train(
        self, generator: DialogueModel, data: Encoded, heldout: Encoded, run: Run, domain: int
    ) -> float:
        """Trains one generator in a folder of its own; gives its validation loss."""
        folder = run.folder / f"domain-{domain}"
        folder.mkdir(exist_ok=True)
        own_run = replace(run, folder=folder)
        return self.trainer(generator, data, heldout, own_run).fit().best_loss

    def answer(self, model: DialogueModel, batch: Batch, decoding: Decoding) -> list[list[int]]:
        """The best of the generators' responses to each context of the batch."""
        width = int(decoding.value) if decoding.method == "beam" else 1
        limit = self.config.response_tokens
        answers = [  # by domain, then by example
            [hypotheses[0] for hypotheses in beam_search(generator, batch, width, limit, decoding)]
            for generator in cast(Any, model).generators
        ]
        scores = (  # log P(d | context) + log p(r | context, d) / |r|, (B, D)
            self.log_domain_probabilities(batch)
            + np.array([[h.score for h in row] for row in answers]).T
        )
        return [list(answers[best][i].tokens) for i, best in enumerate(scores.argmax(1))]

    def log_domain_probabilities(self, batch: Batch) -> Any:
        """Log P(domain | context), (B, D)."""
        if self.domains is None or batch.origin is None:
            raise SystemFailed("it was neither trained nor loaded", where=self.name)
        data, rows = batch.origin
        return self.domains.logs(data.source.take(rows)).numpy()  # (B, D)

    def save_vocabulary(self, folder: Path) -> None:
        """Writes vocabulary.json and domains.safetensors."""
        super().save_vocabulary(folder)
        if self.domains is not None:
            self.domains.save(folder / "domains.safetensors")

    def load_vocabulary(self, folder: Path) -> None:
        """Reads what `save_vocabulary` wrote."""
        super().load_vocabulary(folder)
        self.domains = Domains.load(folder / "domains.safetensors")

    def facts(self) -> Mapping[str, Any]:
        """Also the number of domains."""
        return {**super().facts(), "domains": len(self.domains or ())}


def _of_domain(data: Encoded, domain_of_example: Ints, domain: int) -> Encoded:
    """The examples of one domain; all where there is none of it."""
    rows = np.flatnonzero(domain_of_example == domain)  # (examples of it,)
    # A generator needs some loss to stop by where validation has nothing of its domain.
    if not len(rows):
        return data

    def part(sequences: PackedSequences) -> PackedSequences:
        return replace(sequences, starts=sequences.starts[rows], ends=sequences.ends[rows])

    return replace(
        data,
        ids=data.ids[rows],
        contexts=part(data.contexts),
        source=part(data.source),
        target=part(data.target),
        dialogues=None if data.dialogues is None else data.dialogues[rows],
    )
