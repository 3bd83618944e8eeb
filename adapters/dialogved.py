"""DialogVED: ProphetNet with a Gaussian latent variable z for each context.

Chen et al., "DialogVED: A Pre-trained Latent Variable Encoder-Decoder Model for Dialog Response
Generation". Contexts begin with CLS, whose output gives q(z) = N(mu, sigma^2); the decoder sees z
as one more pair of key and value, the same in every layer, in front of what its main stream has
read (eq. 1), and a bag of words is predicted from it (eq. 8). There is no second network: z is
drawn from the context alone, in training and when responding, and its KL is that to N(0, I).

`dialogved-no-latent` is ProphetNet with CLS in front of the context. Both have the positions of
turns and roles as options (section 2.7). Pre-training is not repeated: see docs/systems.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.data import Batch
from dialbench.neural.model import Losses, State
from dialbench.text.vocabulary import BOS, PAD, SEP

from .blocks.attention import KeysValues, trained
from .blocks.embedding import BESIDE_WORDS, normal_table
from .blocks.latent import Gaussian, bag_nll, latent_warnings, noise
from .blocks.nstream import Distances, RelativeBias, bucket_of
from .blocks.randomized import Draws
from .blocks.sequences import Around, Words
from .pretrained import fairseq
from .pretrained.checkpoint import Checkpoint
from .pretrained.converted import ConvertedCheckpoint, is_converted
from .pretrained.own import OwnModel, PretrainedWeights, converted_weights
from .pretrained.prophetnet import weights_of as prophetnet_weights
from .pretrained.tuning import TunedAdapter
from .prophetnet import ProphetNetConfig, ProphetNetModel

CLS = BOS  # no encoder reads it otherwise
TURNS, ROLES = 32, 4  # rows of the tables of the released code
_TOKEN_BUCKETS, _TURN_BUCKETS = (32, 128), (4, 16)
_POSITIONS = ("turns", "roles", "token_distances", "turn_distances")


@dataclass(frozen=True)
class PositionOptions:
    """Which positions the encoder also knows.

    Attributes:
        turn_ape, role_ape: vectors of turns and of speakers, added to the words'.
        token_rpe, turn_rpe: distances in tokens and in turns, added to the scores of attention.
    """

    turn_ape: bool = False
    role_ape: bool = False
    token_rpe: bool = False
    turn_rpe: bool = False


@dataclass(frozen=True)
class LatentOptions:
    """How z is learnt and used.

    Attributes:
        latent: P, the size of z.
        free_nats: what z may carry at no cost, all dimensions together.
        free_bits: whether each dimension has a share of that (eq. 6), or the KL of an example
            counts as soon as it is more than that (released code).
        bag_reads: what the bag of words is predicted from: z and the context (eq. 8), or z.
        z_at_test: drawn for the context, from N(0, I), or the context's mean.
        latent_keys: when responding, every layer sees z, or only the first does (released code).
    """

    latent: int = 64  # P; DialogVED, Table 2
    free_nats: float = 5.0
    free_bits: Literal["per_dim", "per_example"] = "per_dim"
    bag_reads: Literal["z_and_context", "z"] = "z_and_context"
    z_at_test: Literal["posterior", "prior", "mean"] = "posterior"
    latent_keys: Literal["all_layers", "first_layer"] = "all_layers"

    positive: ClassVar[tuple[str, ...]] = ("latent",)
    not_negative: ClassVar[tuple[str, ...]] = ("free_nats",)


@dataclass(frozen=True)
class DialogConfig(PositionOptions, ProphetNetConfig):
    """Options of DialogVED w/o latent."""


@dataclass(frozen=True)
class DialogVEDConfig(LatentOptions, PositionOptions, ProphetNetConfig):
    """Options of DialogVED."""


class DialogModel(ProphetNetModel):
    """ProphetNet that may know turns and speakers of the context."""

    config: Any  # a ProphetNetConfig with PositionOptions

    def __init__(self, config: Any, words: Words) -> None:
        super().__init__(config, words)
        n, std = config.embedding, BESIDE_WORDS * config.word_spread
        self.turns = normal_table(TURNS, n, std) if config.turn_ape else None
        self.roles = normal_table(ROLES, n, std) if config.role_ape else None
        self.token_distances = self._bias(_TOKEN_BUCKETS) if config.token_rpe else None
        self.turn_distances = self._bias(_TURN_BUCKETS) if config.turn_rpe else None

    def _bias(self, buckets: tuple[int, int]) -> RelativeBias:
        # Scores begin as without it, as a model that was trained without it needs.
        bias = RelativeBias(self.config.embedding, self.config.heads, buckets[0])
        for weight in bias.parameters():
            nn.init.zeros_(weight)
        return bias

    def embed_context(self, tokens: Tensor) -> Tensor:
        """(B, S) tokens of a context -> (B, S, n), words, where they stand and who speaks."""
        x = super().embed_context(tokens)
        turns, roles = turns_and_roles(tokens, self.around)  # (B, S) each
        if self.turns is not None:
            x = x + self.turns(turns)  # TurnAPE
        if self.roles is not None:
            x = x + self.roles(roles)  # RoleAPE
        return x

    def distances(self, tokens: Tensor, seen: Tensor) -> Draws:
        """The distances of all pairs of tokens (B, S), for the options that are on."""
        position = torch.arange(tokens.shape[1], device=tokens.device)[None]  # (1, S)
        kinds = [
            (self.token_distances, position, _TOKEN_BUCKETS),
            (self.turn_distances, tokens.eq(SEP).cumsum(1), _TURN_BUCKETS),  # turns, (B, S)
        ]
        on = [(table, _pairs(at, buckets)) for table, at, buckets in kinds if table is not None]
        if not on:
            return None
        unseen = torch.zeros_like(seen, dtype=torch.float32).masked_fill(~seen, -torch.inf)
        return Distances(tuple(table for table, _ in on), tuple(i for _, i in on), unseen)


def _pairs(positions: Tensor, buckets: tuple[int, int]) -> Tensor:
    # (B, S) positions -> (B, 1, S, S) buckets of query minus key
    distance = positions[:, None, :, None] - positions[:, None, None, :]
    return bucket_of(distance, *buckets, both_ways=True)


def turns_and_roles(tokens: Tensor, around: Around) -> tuple[Tensor, Tensor]:
    """Turns and speakers of a context's tokens, counted back from the response, which is 1 in both.

    The last turn is 2 and so on; its speaker is 2, the one before speaker 1. Tokens that belong to
    no turn (SEP, PAD, what stands in front) are 0.

    Args:
        tokens: (B, S).
        around: what stands in front.

    Returns:
        (B, S) turns from 0 to 31, and speakers from 0 to 2.
    """
    separators = tokens.eq(SEP)
    later = separators.flip(1).cumsum(1).flip(1)  # turns between a token and the response
    outside = separators | tokens.eq(PAD)
    outside[:, : len(around.front)] = True
    turns = (later + 2).clamp(max=TURNS - 1)
    return turns.masked_fill(outside, 0), ((later + 1) % 2 + 1).masked_fill(outside, 0)


class Latent(nn.Module):
    """Everything that z needs.

    Args:
        width: n.
        config: sizes and options.
    """

    def __init__(self, width: int, config: DialogVEDConfig) -> None:
        super().__init__()
        P, context = config.latent, width if config.bag_reads == "z_and_context" else 0
        self.feature = trained(width, width, True)  # first layer of MLP_h, eq. 4
        self.gaussian = trained(width, 2 * P, True)  # second layer of MLP_h
        self.memory = trained(P, 2 * width, True)  # W_M
        # first layer of MLP_z, eq. 8; the output map is its last
        self.bag = trained(P + context, width, True)
        # Else the first samples lie far apart where the context says nothing yet.
        nn.init.normal_(self.gaussian.weight, 0.0, 0.02)
        self.bag_reads = config.bag_reads

    def forward(self, summary: Tensor) -> tuple[Tensor, Gaussian]:
        """(B, n) output at CLS -> f (B, n) and q(z) = N(mu, sigma^2)."""
        feature = self.feature(summary).tanh()  # (B, n)
        return feature, Gaussian.of(self.gaussian(feature))  # eq. 4

    def keys_values(self, z: Tensor, heads: int) -> KeysValues:
        """(B, P) -> key and value (B, H, 1, n/H)."""
        pair = self.memory(z).unflatten(-1, (2, heads, 1, -1))  # [z_key; z_value] = W_M z, eq. 1
        return pair[:, 0], pair[:, 1]

    def bag_feature(self, z: Tensor, feature: Tensor) -> Tensor:
        """(B, P) and (B, n) -> (B, n) from which the response's words are predicted."""
        read = [z, feature.to(z.dtype)] if self.bag_reads == "z_and_context" else [z]
        return self.bag(torch.cat(read, -1)).tanh()  # type: ignore[no-any-return]


class DialogVEDModel(DialogModel):
    """ProphetNet whose main stream sees z."""

    training_only: ClassVar[tuple[str, ...]] = ("latent.bag",)
    config: DialogVEDConfig

    def __init__(self, config: DialogVEDConfig, words: Words) -> None:
        super().__init__(config, words)
        self.latent = Latent(config.embedding, config)

    def _draw(self, q: Gaussian, batch: Batch) -> Tensor:
        # (B, P)
        epsilon = noise(batch, self.config.latent)
        source = "posterior" if self.training else self.config.z_at_test
        if source == "mean":
            return q.mean
        return (q if source == "posterior" else Gaussian.standard(q)).sample(epsilon)

    def start(self, batch: Batch) -> State:
        """Encodes the contexts and draws z, once for all words and beams."""
        memory, seen = self.encode(batch)
        z = self._draw(self.latent(memory[:, 0])[1], batch)  # from h_CLS, (B, P)
        pair = self.latent.keys_values(z, self.config.heads)
        others = pair if self.config.latent_keys == "all_layers" else None
        return self.begin(memory, seen, [pair, *[others] * (self.config.layers - 1)])

    def loss(self, batch: Batch, step: int) -> Losses:
        """Words of both streams, bag of words and KL (eq. 9 without masked words)."""
        memory, seen = self.encode(batch)
        feature, q = self.latent(memory[:, 0])  # of h_CLS
        z = self._draw(q, batch)  # (B, P)
        pair = self.latent.keys_values(z, self.config.heads)
        words = self.loss_from(self.begin(memory, seen, [pair] * self.config.layers), batch)
        bags = self.output(self.latent.bag_feature(z, feature))  # (B, V)
        bag = bag_nll(bags, batch.target).sum()  # -sum_t log f_(r_t), eq. 7
        dimensions = divergences(q)  # (B, P)
        share = 1 / (self.config.ngram * words.tokens)  # as of the words
        total = words.total + share * (bag + self.free(dimensions).sum())
        parts = {"kl": dimensions.sum().detach(), "bow": bag.detach()}
        return replace(words, total=total, parts={**words.parts, **parts})

    def free(self, dimensions: Tensor) -> Tensor:
        """(B, P) KL of each dimension -> (B,) what of it is to be paid."""
        nats = self.config.free_nats
        if self.config.free_bits == "per_dim":
            # eq. 6, whose minus sign is a slip: a cost must grow with the KL
            return dimensions.clamp(min=nats / self.config.latent).sum(-1)
        total = dimensions.sum(-1)
        return total * total.gt(nats)


def divergences(q: Gaussian) -> Tensor:
    """KL(q || N(0, 1)) of each dimension in nats, (B, P)."""
    each = Gaussian(q.mean[..., None], q.log_variance[..., None])
    return each.divergence(Gaussian.standard(each))


def _with_start(title: str, config: Any) -> str:
    from_prophetnet = config.weights and not is_converted(config.weights)
    return f"{title} (ProphetNet start)" if from_prophetnet else title


class _OwnDialog(OwnModel):
    """What both systems share."""

    front = (CLS,)

    @classmethod
    def pretrained_weights(cls, checkpoint: Checkpoint) -> PretrainedWeights:
        """Those of a converted DialogVED, or of a ProphetNet, which lacks what is new here."""
        if isinstance(checkpoint, ConvertedCheckpoint):
            return replace(converted_weights(checkpoint), fresh=_POSITIONS)
        weights = prophetnet_weights(checkpoint, summary=True)
        return replace(weights, fresh=(*_POSITIONS, "latent"))

    @classmethod
    def convert(cls, source: Path, folder: Path) -> None:
        """Converts what its authors released: a checkpoint of fairseq."""
        fairseq.read(source, latent=hasattr(cls.Config, "latent")).convert(cls, folder)


class DialogVEDNoLatent(_OwnDialog, TunedAdapter):
    """DialogVED w/o latent."""

    name = "dialogved-no-latent"
    card = Card(
        title="DialogVED w/o latent (small, from scratch)",
        family="transformer",
        summary="ProphetNet that may know turns and speakers; with weights=FOLDER the pretrained"
        " one, or a ProphetNet",
        paper="Chen et al., DialogVED: A Pre-trained Latent Variable Encoder-Decoder Model for"
        " Dialog Response Generation",
        year=2022,
    )
    Config = DialogConfig
    Model = DialogModel
    architectures = ("prophetnet", "dialogved-no-latent")

    @classmethod
    def title(cls, config: Any) -> str:
        """What tables call the system with this config."""
        return _with_start(super().title(config), config)


class DialogVED(_OwnDialog, TunedAdapter):
    """DialogVED."""

    name = "dialogved"
    card = Card(
        title="DialogVED (small, from scratch)",
        family="variational",
        summary="ProphetNet with a Gaussian latent variable that the decoder attends to; with"
        " weights=FOLDER the pretrained one, or a ProphetNet",
        paper="Chen et al., DialogVED: A Pre-trained Latent Variable Encoder-Decoder Model for"
        " Dialog Response Generation",
        year=2022,
    )
    Config = DialogVEDConfig
    Model = DialogVEDModel
    architectures = ("prophetnet", "dialogved")

    @classmethod
    def title(cls, config: Any) -> str:
        """What tables call the system with this config."""
        return _with_start(super().title(config), config)

    def warnings(self) -> list[str]:
        """A latent variable that carries nothing."""
        return latent_warnings(self.history, ["kl"], 0)
