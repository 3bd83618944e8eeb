"""PLATO: one transformer reads the context both ways and writes the response from left to right.

Bao et al., "PLATO: Pre-trained Dialogue Generation Model with Discrete Latent Variable", baseline
of the DialogVED paper. A latent value z of K stands in front of the sequence as one more token. A
second pass over the same stack, with a token [M] in the place of z, reads context and response and
gives the posterior q(z) and the coherence of the two. When responding, each of the K values gives
a candidate, all in one batch, and the most coherent one is the response.

`plato-no-latent` has neither z nor the second pass. With `weights` both start from what the authors
pre-trained, converted; without, they are small models from scratch, and their titles say so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.data import Batch
from dialbench.neural.decoding import decode
from dialbench.neural.model import DialogueModel, Losses, State, word_loss
from dialbench.neural.randomness import uniforms
from dialbench.records import Decoding
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP

from .blocks.attention import KeysValues
from .blocks.causal import CausalLayer, CausalSizes, make_output
from .blocks.embedding import BESIDE_WORDS, WordEmbedding, WordStart, normal_table
from .blocks.latent import bag_nll, latent_warnings
from .blocks.sequences import Around, Words, surround
from .pretrained import plato as pretrained
from .pretrained.checkpoint import Checkpoint
from .pretrained.converted import ConvertedCheckpoint
from .pretrained.own import OwnModel, PretrainedWeights, converted_weights
from .pretrained.tuning import TunedAdapter, TuningConfig

TURNS, ROLES = 16, 2  # rows of the tables of PLATO's code


@dataclass(frozen=True)
class PlatoConfig(WordStart, TuningConfig):
    """Sizes and rates from scratch, and how pretrained weights are fine-tuned.

    With `weights` the checkpoint's sizes and dropout hold.

    Attributes:
        layers, heads, embedding: of the stack; `embedding` is n.
        word_spread: standard deviation of word vectors at the start.
        embedding_gain: what the norm behind the embeddings multiplies by at the start. At 1 words
            are small beside what untrained layers add to them.
        dropout: on attention weights and sub-network outputs.
        norm: layer normalisation behind (post) or before (pre) each sub-network.
        tied: whether words are predicted by their own vectors, or by a map that starts as
            `output_start` and `output_bias` say.
    """

    learning_rate: float = 3e-4
    warmup: float = 2_000
    tuning_epochs: int = 3
    layers: int = 6
    heads: int = 8
    embedding: int = 256
    word_spread: float = 0.035
    embedding_gain: float = 1.0
    dropout: float = 0.1
    norm: Literal["post", "pre"] = "post"
    tied: bool = True

    of_all_heads: ClassVar[str] = "embedding"
    positive: ClassVar[tuple[str, ...]] = (
        *("layers", "heads", "embedding", "word_spread", "embedding_gain"),
    )
    rates: ClassVar[tuple[str, ...]] = ("dropout",)

    @property
    def positions(self) -> int:
        """Rows of the table of places within a turn."""
        return max(self.context_tokens, self.response_tokens) + 1


@dataclass(frozen=True)
class LatentPlatoConfig(PlatoConfig):
    """Sizes and rates; further options as of `PlatoConfig`.

    Attributes:
        values: K, how many values z has, and how many candidates there are.
        temperature: of the Gumbel-softmax that mixes the values in training.
        balance: weight of the KL of a batch's mean posterior to the uniform one, which keeps all
            values in use; PLATO has none.
        selection: weight of the loss of the coherence, beside the sum over a response's words;
            PLATO has 1.
    """

    values: int = 20
    temperature: float = 0.67  # of PLATO's code
    balance: float = 0.0
    selection: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("values", "temperature")
    not_negative: ClassVar[tuple[str, ...]] = ("balance", "selection")


class PlatoModel(DialogueModel):
    """The stack over [z], context and response."""

    config: PlatoConfig

    def __init__(self, config: PlatoConfig, words: Words) -> None:
        super().__init__()
        n, std, self.config = config.embedding, config.word_spread, config
        self.embedding = WordEmbedding(words.count, n, std)  # E, (V, n)
        self.places = normal_table(words.positions, n, BESIDE_WORDS * std)
        self.turns = normal_table(TURNS, n, BESIDE_WORDS * std)
        self.roles = normal_table(ROLES, n, BESIDE_WORDS * std)
        self.norm = nn.LayerNorm(n)
        nn.init.constant_(self.norm.weight, config.embedding_gain)
        sizes = CausalSizes(config.layers, config.heads, n, words.positions, config.dropout)
        self.layers = nn.ModuleList(
            CausalLayer(sizes, config.norm, F.gelu) for _ in range(config.layers)
        )
        self.end = nn.LayerNorm(n) if config.norm == "pre" else nn.Identity()
        self.output = make_output(self.embedding, words.unused, tied=config.tied)

    def context(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(B, S) contexts -> (B, S + 1, n) normalised sums, and real tokens (B, S + 1)."""
        tokens = surround(batch.source, Around(behind=(SEP,)))  # every turn ends
        places, turns, roles = positions(tokens)
        words = self.embedding(torch.where(tokens.eq(SEP), EOS, tokens))  # (B, S + 1, n)
        x = words + self.places(places) + self.turns(turns) + self.roles(roles)
        return self.norm(x), tokens.ne(PAD)

    def response(self, tokens: Tensor, first: int = 0) -> Tensor:
        """(N, T) tokens from position `first` on -> (N, T, n), turn 0 and role 0."""
        places = torch.arange(first, first + tokens.shape[1], device=tokens.device)
        x = self.embedding(tokens) + self.places(places)  # (N, T, n)
        return self.norm(x + self.turns.weight[0] + self.roles.weight[0])  # type: ignore[no-any-return]

    def run(
        self, x: Tensor, mask: Tensor, past: Sequence[KeysValues] | None = None
    ) -> tuple[Tensor, list[KeysValues]]:
        """(N, L, n) through all layers; mask (N, 1, L or 1, P + L), True where a key is seen."""
        presents = []
        for number, layer in enumerate(self.layers):
            x, present = layer(x, past[number] if past else None, mask)
            presents.append(present)
        return self.end(x), presents

    def write(
        self, context: Tensor, seen: Tensor, response: Tensor, head: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """One pass over [z], context and response with teacher forcing.

        Args:
            context: (B, S, n) as `context` gives it.
            seen: (B, S) real tokens.
            response: (B, T, n) as `response` gives it.
            head: (B, n) vectors of z, or None.

        Returns:
            (B, T, n) outputs of the response, and (B, n) of the first token.
        """
        context, seen = self.lead(context, seen, head)
        S, T = context.shape[1], response.shape[1]
        causal = torch.ones(T, T, dtype=torch.bool, device=seen.device).tril()
        # A context sees itself, (B, S, S + T).
        upper = F.pad(seen[:, None].expand(-1, S, -1), (0, T))
        # A response sees the context and its own past, (B, T, S + T).
        lower = torch.cat([seen[:, None].expand(-1, T, -1), causal.expand(len(seen), T, T)], 2)
        mask = torch.cat([upper, lower], 1)[:, None]  # (B, 1, S + T, S + T)
        x, _ = self.run(torch.cat([context, response], 1), mask)
        return x[:, S:], x[:, 0]

    def lead(self, context: Tensor, seen: Tensor, head: Tensor | None) -> tuple[Tensor, Tensor]:
        """Context (B, S, n) and real tokens (B, S), with the normalised head in front."""
        if head is None:
            return context, seen
        return torch.cat([self.norm(head)[:, None], context], 1), F.pad(seen, (1, 0), value=True)

    def draw(self, batch: Batch) -> Tensor | None:
        """(B, n) vectors of values of z that no response decides; none here."""
        return None

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing."""
        hidden, _ = self.write(*self.context(batch), self.response(batch.inputs), self.draw(batch))
        return self.output(hidden)  # type: ignore[no-any-return]

    def loss(self, batch: Batch, step: int) -> Losses:
        """Negative log-likelihood, mean over real target tokens."""
        hidden, _ = self.write(*self.context(batch), self.response(batch.inputs), None)
        return word_loss(hidden, self.output, batch)

    def start(self, batch: Batch) -> State:
        """Reads the contexts."""
        return self.begin(batch, self.draw(batch))

    def begin(self, batch: Batch, head: Tensor | None) -> State:
        """Reads the contexts behind z (B, n)."""
        context, seen = self.lead(*self.context(batch), head)  # (B, [1 +] S, n), (B, [1 +] S)
        _, row = self.run(context, seen[:, None, None])
        return State({"seen": seen}, row)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        seen = state.example["seen"].repeat_interleave(state.width, 0)
        seen = F.pad(seen, (0, state.length + 1), value=True)  # (N, S + t + 1)
        x = self.response(tokens[:, None], state.length)  # (N, 1, n)
        x, row = self.run(x, seen[:, None, None], state.row)
        return self.output(x[:, 0]), replace(state, row=row, length=state.length + 1)


def positions(tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Places, turns and roles of a context's tokens (B, S), each turn ended by its SEP.

    Places begin anew in every turn. Turns are counted back from the response, which is turn 0;
    its speaker is role 0, and the other one 1.
    """
    indices = torch.arange(tokens.shape[1], device=tokens.device)
    ends = tokens.eq(SEP)  # (B, S)
    begins = F.pad(ends[:, :-1], (1, 0), value=True)  # the first token of each turn
    first = torch.where(begins, indices, 0).cummax(1).values  # where each token's turn begins
    turns = ends.flip(1).cumsum(1).flip(1)  # 1 for the last turn, its SEP included
    return indices - first, turns.clamp(max=TURNS - 1), turns % 2


class LatentPlatoModel(PlatoModel):
    """The stack with its latent values, and the pass that reads context and response."""

    variational: ClassVar[bool] = True
    criterion: ClassVar[tuple[str, ...]] = ("nll", "kl")
    training_only: ClassVar[tuple[str, ...]] = ("recognition", "bag")
    config: LatentPlatoConfig

    def __init__(self, config: LatentPlatoConfig, words: Words) -> None:
        super().__init__(config, words)
        n, std = config.embedding, config.word_spread
        self.values = normal_table(config.values, n, std)  # a vector for each z
        self.mask = nn.Parameter(torch.randn(n) * std)  # [M]
        self.recognition = nn.Linear(n, config.values, bias=False)  # [M] -> q(z | c, r)
        self.bag = nn.Linear(n, words.count, bias=False)  # output at z -> p(w | z, c)
        self.coherence = nn.Linear(n, 1)  # [M] -> log odds that r fits c

    def draw(self, batch: Batch) -> Tensor:
        """(B, n) vectors of values from the uniform prior."""
        share = latent_uniforms(batch)[:, 0]  # (B,)
        return self.values((share * self.config.values).long())  # type: ignore[no-any-return]

    def understand(self, context: Tensor, seen: Tensor, response: Tensor, real: Tensor) -> Tensor:
        """(B, n) output at [M] in front of context and response, read both ways."""
        x, mask = self.lead(context, seen, self.mask.expand(len(context), -1))  # (B, 1 + S, n)
        mask = torch.cat([mask, real], 1)[:, None, None]  # (B, 1, 1, 1 + S + T)
        return self.run(torch.cat([x, response], 1), mask)[0][:, 0]

    def _mix(self, logs: Tensor, batch: Batch) -> Tensor:
        # log q(z) (B, K) -> weights of the values: Gumbel-softmax, or a 1 for a value drawn from q
        if not self.training:
            # Not the likeliest one, under which NLL + KL(q || uniform) may lie below -log p(r | c).
            cumulative = logs.double().exp().cumsum(-1)
            # inverse of the cumulative distribution: as many values end below the uniform number
            z = cumulative[:, :-1].le(latent_uniforms(batch)).sum(-1)  # (B,)
            return F.one_hot(z, self.config.values).to(logs.dtype)
        gumbel = -torch.empty_like(logs).exponential_().log()  # (B, K)
        return ((logs + gumbel) / self.config.temperature).softmax(-1)

    def loss(self, batch: Batch, step: int) -> Losses:
        """Words under z of the posterior, their bag, and which response fits the context."""
        context, seen = self.context(batch)  # (B, S, n), (B, S)
        response, real = self.response(batch.inputs), batch.target.ne(PAD)  # (B, T, n), (B, T)
        # The response of the next example is the wrong one, unless it says the same.
        pairs = torch.cat([response, response.roll(-1, 0)]), torch.cat([real, real.roll(-1, 0)])
        summary = self.understand(context.repeat(2, 1, 1), seen.repeat(2, 1), *pairs)  # (2B, n)
        right, wrong = summary.chunk(2)  # (B, n) each
        logs = self.recognition(right).float().log_softmax(-1)  # log q(z | c, r), (B, K)
        head = self._mix(logs, batch).to(context.dtype) @ self.values.weight  # (B, n)
        hidden, first = self.write(context, seen, response, head)  # (B, T, n), (B, n)
        words = word_loss(hidden, self.output, batch)
        bag = bag_nll(self.bag(first), batch.target).sum()  # -sum_t log p(y_t | z, c)
        differs = batch.target.ne(batch.target.roll(-1, 0)).any(1)  # (B,)
        # -(log p(right) + log(1 - p(wrong))), (B, 1)
        fits = F.softplus(-self.coherence(right)) + F.softplus(self.coherence(wrong))
        selection = (fits[:, 0].float() * differs).sum()
        usage = logs.logsumexp(0) - math.log(len(batch))  # log of the batch's mean q, (K,)
        # sums over the examples: KL(q || uniform), and what z shares with them, KL(q || mean q)
        divergence = (logs.exp() * logs).sum() + len(batch) * math.log(self.config.values)
        information = (logs.exp() * (logs - usage)).sum()
        balance = self.config.balance * (divergence - information)  # B KL(mean q || uniform)
        # PLATO's three losses, without a KL to the prior; `balance` is ours.
        extra = bag + self.config.selection * selection + balance
        total = words.total + extra / words.tokens
        parts = {"kl": divergence, "information": information, "bow": bag, "selection": selection}
        parts = {**words.parts, **{name: value.detach() for name, value in parts.items()}}
        return replace(words, total=total, parts=parts)

    @torch.no_grad()
    def scores(self, batch: Batch, responses: Sequence[Sequence[int]]) -> Tensor:
        """(B,) log odds that each response fits its context."""
        longest = max(map(len, responses))
        rows = [[BOS, *words] + [PAD] * (longest - len(words)) for words in responses]
        tokens = torch.tensor(rows, device=batch.source.device)
        # (B, n)
        read = self.understand(*self.context(batch), self.response(tokens), tokens.ne(PAD))
        return self.coherence(read)[:, 0].float()  # type: ignore[no-any-return]


def latent_uniforms(batch: Batch) -> Tensor:
    """Uniform numbers (B, 1): by example id, or without a seed the global generator's."""
    device = batch.source.device
    if batch.seed is None:
        return torch.rand(len(batch), 1, device=device)
    return uniforms(batch.seed, f"{batch.purpose} latent", batch.ids, 1).to(device)


class Candidates(DialogueModel):
    """The same model, contexts of a batch taking the values of z in turn."""

    def __init__(self, model: LatentPlatoModel) -> None:
        super().__init__()
        self.model = model

    def start(self, batch: Batch) -> State:
        """Reads the contexts, the first behind the first value and so on."""
        values = self.model.values.weight
        return self.model.begin(batch, values.repeat(len(batch) // len(values), 1))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """As of the model."""
        return self.model.step(tokens, state)


def repeated(batch: Batch, times: int) -> Batch:
    """Every context so many times in a row, each under an id of its own, to be responded to."""
    source = batch.source.repeat_interleave(times, 0)
    ids = tuple(f"{id} {number}" for id in batch.ids for number in range(times))
    return Batch(ids, source, source[:, :0], source.new_empty(0), batch.seed, batch.purpose)


class _OwnPlato(OwnModel):
    """What both systems share."""

    @classmethod
    def pretrained_weights(cls, checkpoint: Checkpoint) -> PretrainedWeights:
        """Those of a converted PLATO."""
        return converted_weights(cast(ConvertedCheckpoint, checkpoint))

    @classmethod
    def convert(cls, source: Path, folder: Path) -> None:
        """Converts what its authors released: tensors of PaddlePaddle."""
        pretrained.read(source, latent=hasattr(cls.Config, "values")).convert(cls, folder)


class Plato(_OwnPlato, TunedAdapter):
    """PLATO."""

    name = "plato"
    version = 2
    card = Card(
        title="PLATO (small, from scratch)",
        family="variational",
        summary="one stack for context and response; the best of 20 responses, one a latent value;"
        " with weights=FOLDER the pretrained one",
        paper="Bao et al., PLATO: Pre-trained Dialogue Generation Model with Discrete Latent"
        " Variable",
        year=2020,
    )
    Config = LatentPlatoConfig
    Model = LatentPlatoModel
    architectures = ("plato",)

    def answer(self, model: DialogueModel, batch: Batch, decoding: Decoding) -> list[list[int]]:
        """The most coherent of the candidates for each context, the first of equals."""
        plato = cast(LatentPlatoModel, model)
        K = plato.config.values
        wide = repeated(batch, K)
        candidates = decode(Candidates(plato), wide, decoding, self.config.response_tokens)
        best = plato.scores(wide, candidates).view(-1, K).argmax(1).tolist()  # of (B, K)
        return [candidates[row * K + number] for row, number in enumerate(best)]

    def warnings(self) -> list[str]:
        """A latent variable that carries nothing."""
        return latent_warnings(self.history, ["information"], 0)


class PlatoNoLatent(_OwnPlato, TunedAdapter):
    """PLATO w/o latent."""

    name = "plato-no-latent"
    card = Card(
        title="PLATO w/o latent (small, from scratch)",
        family="transformer",
        summary="one stack that reads the context both ways and goes on with the response; with"
        " weights=FOLDER the pretrained one",
        paper="Bao et al., PLATO: Pre-trained Dialogue Generation Model with Discrete Latent"
        " Variable",
        year=2020,
    )
    Config = PlatoConfig
    Model = PlatoModel
    architectures = ("plato-no-latent",)
