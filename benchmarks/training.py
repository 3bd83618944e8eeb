"""Training and greedy answering against the transformers library, in one run.

    python benchmarks/training.py --data DIR [--examples 4000] [--rounds 3] [--json FILE]

Both sides have an encoder-decoder of the paper preset's size (6 + 6 layers, width 300, 4 heads,
feed-forward 2,048, vocabulary 20,000) and see the same DailyDialog pairs, batch 32 for training
and 64 for answering. The peer is `Seq2SeqTrainer` with a BART of that size: once with its default
settings, once at its best (batches grouped by length; bfloat16 where the hardware multiplies it).
Its `generate` runs greedily with cache, once over batches in corpus order and once over contexts
sorted by length. Both sides write exactly 20 words an answer.

Sides take turns in every round, so that a machine whose speed drifts slows both. Needs the
transformers library and accelerate. Examples a second; the ratios are ours over the peer's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dialbench_adapters.transformer import TransformerConfig, TransformerModel

from dialbench.adapter import Progress, Run
from dialbench.corpora.base import load_corpus
from dialbench.neural.data import (
    Encoded,
    answering_rows,
    build_vocabulary,
    encode,
    encode_split,
    make_batch,
    training_rows,
)
from dialbench.neural.devices import describe, dtype_of
from dialbench.neural.training import Trainer
from dialbench.text.vocabulary import BOS, EOS, PAD

STEPS, WORDS = 12, 20


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=4000)
    parser.add_argument("--answers", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    corpus = load_corpus("dailydialog", data=arguments.data)
    train = corpus.train[: arguments.examples]
    # All of train, so that the vocabulary has its full size.
    vocabulary = build_vocabulary(corpus.train, 20_000)
    config = TransformerConfig()
    data = encode_split(train, vocabulary, config.context_tokens, config.response_tokens)
    contexts = [example.as_context() for example in corpus.test[: arguments.answers]]
    test = encode(contexts, vocabulary, config.context_tokens)
    model = TransformerModel(config, len(vocabulary))
    sides: dict[str, Callable[[], float]] = {
        "train": Ours(model, data, config).train,
        "train_peer_default": Peer(data, len(vocabulary), best=False).train,
        "train_peer_best": Peer(data, len(vocabulary), best=True).train,
        "answer": lambda: answer(model, test),
        "answer_peer_default": Generating(test, len(vocabulary), grouped=False).answer,
        "answer_peer_best": Generating(test, len(vocabulary), grouped=True).answer,
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(arguments.rounds):
        for name, side in sides.items():
            rates[name].append(side())
    report = summary(rates) | {"machine": describe("cpu", dtype_of("auto", "cpu"))}
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")


def summary(rates: dict[str, list[float]]) -> dict[str, Any]:
    """Medians, and medians of the ratios round by round."""
    ratios = {
        f"{kind}_{peer}": statistics.median(
            ours / theirs
            for ours, theirs in zip(rates[kind], rates[f"{kind}_peer_{peer}"], strict=True)
        )
        for kind in ("train", "answer")
        for peer in ("default", "best")
    }
    medians = {name: statistics.median(values) for name, values in rates.items()}
    return {"examples_per_second": medians, "ratios": ratios, "rounds": rates}


class Ours:
    """Some updates of our own training loop."""

    def __init__(self, model: TransformerModel, data: Encoded, config: TransformerConfig) -> None:
        folder = Path(tempfile.mkdtemp())
        self.trainer = Trainer(model, data, data, config, Run(1, "cpu", folder, {}, Progress()))
        self.data, self.config, self.epoch = data, config, 0

    def train(self) -> float:
        """Examples a second."""
        self.epoch += 1
        rows = training_rows(self.data, self.config.batch_size, 1, self.epoch)[: STEPS + 2]
        self.trainer.model.train()
        for batch in rows[:2]:
            self.trainer._update(batch)
        start = time.perf_counter()
        for batch in rows[2:]:
            self.trainer._update(batch)
        return sum(map(len, rows[2:])) / (time.perf_counter() - start)


def answer(model: TransformerModel, test: Encoded) -> float:
    """Answers a second of our own greedy search; no answer ends early."""
    model.eval()
    start = time.perf_counter()
    with torch.no_grad():
        for rows in answering_rows(test, 64):
            state = model.start(make_batch(test, rows, "cpu"))
            tokens = torch.full((len(rows),), BOS)
            for _ in range(WORDS):
                logits, state = model.step(tokens, state)
                logits[:, [PAD, EOS]] = -torch.inf
                tokens = logits.argmax(-1)
    return len(test) / (time.perf_counter() - start)


def bart(vocabulary: int) -> Any:
    """A BART of the paper preset's size, untrained."""
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(
        vocab_size=vocabulary,
        d_model=300,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        max_position_embeddings=512,
        activation_function="relu",
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    return BartForConditionalGeneration(config)


class Peer:
    """Some updates of Seq2SeqTrainer."""

    def __init__(self, data: Encoded, vocabulary: int, *, best: bool) -> None:
        self.model, self.best = bart(vocabulary), best
        self.rows = [
            {
                "input_ids": data.source.values[a:b].tolist(),
                "labels": data.target.values[c:d].tolist(),
            }
            for a, b, c, d in zip(
                data.source.starts,
                data.source.ends,
                data.target.starts,
                data.target.ends,
                strict=True,
            )
        ]

    def train(self) -> float:
        """Examples a second."""
        from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

        best = {}
        if self.best:
            best = {
                "train_sampling_strategy": "group_by_length",
                "bf16": dtype_of("auto", "cpu") == torch.bfloat16,
            }
        arguments = Seq2SeqTrainingArguments(
            output_dir=tempfile.mkdtemp(),
            per_device_train_batch_size=32,
            max_steps=STEPS,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            **best,
        )
        trainer = Seq2SeqTrainer(
            self.model, arguments, data_collator=collate, train_dataset=self.rows
        )
        start = time.perf_counter()
        trainer.train()
        return STEPS * 32 / (time.perf_counter() - start)


def collate(rows: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
    """Pads to the longest of the batch, as DataCollatorForSeq2Seq does."""

    def padded(key: str, fill: int) -> torch.Tensor:
        longest = max(len(row[key]) for row in rows)
        return torch.tensor([row[key] + [fill] * (longest - len(row[key])) for row in rows])

    source = padded("input_ids", PAD)
    return {
        "input_ids": source,
        "attention_mask": source.ne(PAD).long(),
        "labels": padded("labels", -100),
    }


class Generating:
    """The library's greedy `generate` with cache."""

    def __init__(self, test: Encoded, vocabulary: int, *, grouped: bool) -> None:
        self.model = bart(vocabulary).eval()
        order = np.concatenate(list(answering_rows(test, 64))) if grouped else np.arange(len(test))
        self.batches = [
            torch.from_numpy(test.source.padded(order[i : i + 64]))
            for i in range(0, len(order), 64)
        ]
        self.count = len(test)

    def answer(self) -> float:
        """Answers a second."""
        start = time.perf_counter()
        for source in self.batches:
            self.model.generate(
                input_ids=source,
                attention_mask=source.ne(PAD).long(),
                do_sample=False,
                num_beams=1,
                use_cache=True,
                min_new_tokens=WORDS,
                max_new_tokens=WORDS,
            )
        return self.count / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
