"""Trained systems in sizes that a test can afford, and the invented talk that they see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialbench.records import Context, Example, Split
from dialbench.systems import Registry

TINY = {
    "embedding": 16,
    "attention": 8,
    "heads": 2,
    "layers": 2,
    "feed_forward": 24,
    "hidden": 12,
    "decoder_hidden": 14,
    "lda_topics": 4,
    "topic_words": 6,
    "sweeps": 5,
    "domains": 2,
    "latent": 6,
    "latent_hidden": 10,
    "vocabulary": 100,
    "context_tokens": 30,
    "response_tokens": 10,
    "batch_size": 4,
    "answer_batch": 3,
    "warmup": 10,
    "schedule": "constant",
    "learning_rate": 5e-3,
    "epochs": 3,
    "precision": "float64",
}

_PAIRS = [
    (["Is the bakery open?"], "It opens at seven."),
    (["I lost my umbrella.", "Where?", "On the tram."], "Call their office."),
    (["Do you play chess?"], "Only with my aunt, and she always wins."),
    (["The soup is cold.", "I am sorry."], "Could you warm it up?"),
    (["Which way is north?"], "Over there."),
    (["Our train leaves at nine.", "Then hurry!"], "My bag is not packed."),
    (["Nice hat.", "Thank you.", "Is it new?"], "No, it was my father's."),
    (["Did the parcel come?"], "Yes."),
]


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As results are exact for one number of threads only."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def build():
    """An untrained adapter from what `--models` takes, tiny where not told otherwise."""
    registry = Registry()

    def build(text: str, **options: Any):
        return registry.parse(text)[0].build({**TINY, **options})

    return build


@pytest.fixture(scope="session")
def eight() -> Split:
    """Eight pairs to learn by heart."""
    return Split(
        "train",
        [
            Example(f"pair-{i}", f"pair-{i}", tuple(context), (response,))
            for i, (context, response) in enumerate(_PAIRS)
        ],
    )


@pytest.fixture(scope="session")
def asked(eight) -> list[Context]:
    return [example.as_context() for example in eight]


@pytest.fixture(scope="session")
def ready(build, eight):
    """An adapter with an untrained model in eval mode, its vocabulary and the eight as a batch."""
    from dialbench.adapter import Run
    from dialbench.neural.data import build_vocabulary, encode_split, make_batch

    def ready(text: str, *, seed: int | None = 5, **options: Any):
        adapter = build(text, **options)
        adapter.vocabulary = build_vocabulary(eight, adapter.config.vocabulary)
        model = adapter._new_model(Run(1)).eval()
        config = adapter.config
        data = encode_split(
            eight, adapter.vocabulary, config.context_tokens, config.response_tokens
        )
        return model, make_batch(data, np.arange(8), "cpu", seed, "infer")

    return ready


@pytest.fixture(scope="session")
def batch_of(eight):
    """The eight as a batch in the numbers of an adapter that knows its words."""
    from dialbench.neural.data import make_batch

    return lambda adapter: make_batch(adapter._encode(eight), np.arange(8), "cpu", 5, "infer")


@pytest.fixture(scope="session")
def rows_of():
    """Cuts a batch of these rows of another anew from its split."""
    from dialbench.neural.data import make_batch

    def rows_of(batch: Any, rows: Any) -> Any:
        data, numbers = batch.origin
        return make_batch(data, numbers[rows.numpy()], "cpu", batch.seed, batch.purpose)

    return rows_of


@pytest.fixture(scope="session")
def check_cached_equals_whole(rows_of):
    """Decodes random words step by step while beams are re-ordered and examples dropped.

    At every step the logits must be those of one pass over the context and all words so far.
    """
    import torch
    from torch.nn.functional import pad

    from dialbench.text.vocabulary import BOS, EOS

    def whole(model: Any, batch: Any, examples: Any, prefixes: Any) -> Any:
        following = pad(prefixes[:, 1:], (0, 1), value=EOS)
        return model.logits(replace(rows_of(batch, examples), target=following))[:, -1]

    def demand(model: Any, batch: Any, width: int) -> None:
        random = torch.Generator().manual_seed(1)
        with torch.no_grad():
            state = model.start(batch).widen(width)
            examples = torch.arange(8).repeat_interleave(width)
            prefixes = torch.full((8 * width, 1), BOS)
            for place in range(7):
                logits, state = model.step(prefixes[:, -1], state)
                expected = whole(model, batch, examples, prefixes)
                assert torch.allclose(logits, expected, rtol=0, atol=1e-10)
                if place in (1, 4):
                    beams = torch.randint(width, (len(examples) // width, width), generator=random)
                    rows = (torch.arange(len(beams))[:, None] * width + beams).flatten()
                    state, prefixes = state.reorder(rows), prefixes[rows]
                if place == 3:
                    kept = torch.tensor([6, 1, 2])
                    state = state.keep(kept)
                    rows = (kept[:, None] * width + torch.arange(width)).flatten()
                    prefixes, examples = prefixes[rows], examples[rows]
                words = torch.randint(5, 30, (len(prefixes), 1), generator=random)
                prefixes = torch.cat([prefixes, words], 1)

    return demand


@pytest.fixture(scope="session")
def learn():
    """Trains on one batch at these steps, and gives the last losses."""
    import torch

    def learn(model: Any, batch: Any, steps: Iterable[int], rate: float = 1e-2) -> Any:
        adam = torch.optim.Adam(model.parameters(), lr=rate)
        for step in steps:
            adam.zero_grad()
            losses = model.loss(batch, step)
            losses.total.backward()
            adam.step()
        return losses

    return learn


@pytest.fixture
def check_elbo(build, eight, tmp_path):
    """The validation loss must be the NLL and the KL with weight one, whatever training weighs."""
    from dialbench.adapter import Run

    def demand(system: str, *parts: str, **options: Any) -> None:
        adapter = build(system, epochs=2, **options)
        adapter.fit(eight, eight, Run(1, folder=tmp_path))
        tokens = int(adapter._encode(eight).target.lengths.sum())
        for row in adapter.curve():
            divergence = sum(row[f"valid_{part}_per_example"] for part in parts) * 8 / tokens
            assert row["valid_loss"] == pytest.approx(row["valid_nll"] + divergence)
            assert row["valid_loss"] > row["valid_nll"]

    return demand


@pytest.fixture(scope="session")
def check_orderless_bag():
    """Responses word for word backwards must change the words' loss, and never the bag's."""
    from dialbench.text.vocabulary import PAD

    def demand(model, batch) -> None:
        turned = batch.target.clone()
        for row, end in enumerate((batch.target.ne(PAD).sum(1) - 1).tolist()):
            turned[row, :end] = turned[row, :end].flip(0)
        before = model.loss(batch, 0).parts
        after = model.loss(replace(batch, target=turned), 0).parts
        assert after["bow"].item() == pytest.approx(before["bow"].item())
        assert after["nll"].item() != pytest.approx(before["nll"].item())

    return demand


TALK = ["Is the bakery open?", "it opens at seven.", "call their office.", "over there, i think."]
END = "<|end|>"


def _tokenizer(front: bool, behind: bool) -> Any:
    """Byte pairs of four lines; `front` and `behind`: what is put around every text."""
    from tokenizers import ByteLevelBPETokenizer
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    pairs = ByteLevelBPETokenizer()
    # The end of text is neither the first nor the last token, so that a wrong place shows.
    special = ["<pad>", "<s>", END, "<unk>"]
    pairs.train_from_iterator(TALK, 300, special_tokens=special, show_progress=False)
    pairs._tokenizer.post_processor = TemplateProcessing(
        single=" ".join(["<s>"] * front + ["$A"] + [END] * behind),
        special_tokens=[("<s>", 1), (END, 2)],
    )
    names = {"bos": "<s>", "eos": END, "unk": "<unk>", "pad": "<pad>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=pairs._tokenizer,
        **{f"{name}_token": token for name, token in names.items()},
    )


def _model(kind: str, words: int) -> Any:
    """Weights far from nothing, so that a wrong place shows."""
    import transformers as library

    tokens = {"vocab_size": words, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    bart = {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "init_std": 0.3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "max_position_embeddings": 64,
    }
    llama = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
        "tie_word_embeddings": kind == "qwen2",
    }
    gpt2 = {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}
    t5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    prophetnet = {
        "hidden_size": 32,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "num_encoder_attention_heads": 4,
        "num_decoder_attention_heads": 4,
        "max_position_embeddings": 64,
        "init_std": 0.3,
        "decoder_start_token_id": 2,
    }
    kinds = {
        "prophetnet": (
            library.ProphetNetForConditionalGeneration,
            library.ProphetNetConfig,
            prophetnet,
        ),
        "openai-gpt": (library.OpenAIGPTLMHeadModel, library.OpenAIGPTConfig, gpt2),
        "gpt2": (library.GPT2LMHeadModel, library.GPT2Config, gpt2),
        "llama": (library.LlamaForCausalLM, library.LlamaConfig, llama),
        "qwen2": (library.Qwen2ForCausalLM, library.Qwen2Config, llama),
        "t5": (
            library.T5ForConditionalGeneration,
            library.T5Config,
            {**t5, "decoder_start_token_id": 0},
        ),
        "bart": (
            library.BartForConditionalGeneration,
            library.BartConfig,
            {**bart, "decoder_start_token_id": 2},
        ),
        "blenderbot": (
            library.BlenderbotForConditionalGeneration,
            library.BlenderbotConfig,
            {**bart, "decoder_start_token_id": 1},
        ),
    }
    model, config, sizes = kinds[kind]
    return model(config(**tokens, **sizes))


# What the tokenizers of these families put around a text.
_AROUND = {
    "openai-gpt": (False, False),
    "gpt2": (False, False),
    "llama": (True, False),
    "qwen2": (False, False),
    "t5": (False, True),
    "prophetnet": (False, True),
    "bart": (True, True),
    "blenderbot": (False, True),
}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Callable[[str], Path]:
    """The folder of a tiny checkpoint of that kind, as real ones are published."""
    import torch
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()

    @cache
    def make(kind: str) -> Path:
        folder = tmp_path_factory.mktemp("checkpoints") / f"tiny-{kind}"
        tokenizer = _tokenizer(*_AROUND[kind])
        tokenizer.save_pretrained(folder)
        with torch.random.fork_rng():
            torch.manual_seed(1)
            # four more rows than tokens, as published models often have
            _model(kind, len(tokenizer) + 4).save_pretrained(folder)
        return folder

    return make
