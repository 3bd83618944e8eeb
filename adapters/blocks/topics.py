"""What a conversation is about, inferred from its words (AdaND paper, section 3.2.1).

A Gaussian variable nu is inferred from the bag of topical words: by the prior from the context, by
the posterior, in training only, from context and response. theta = softmax of a network of nu are
the shares of K topics, each a vector in the space of topical words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice, pairwise

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.neural.dropout import Dropout
from dialbench.text.vocabulary import SPECIALS, Vocabulary

from .latent import Gaussian

# Words that say how a sentence is built and not what it is about.
_STOP = """
a about above across after afterwards again against ago ah all almost alone along already also
although always am among an and another any anybody anyhow anyone anything anyway anywhere are
aren around as at away back be became because become been before behind being below beside
besides between beyond both but by can cannot could couldn d did didn do does doesn doing don
done down during each either else enough er even ever every everybody everyone everything
everywhere except few for from further get gets getting go goes going gone gonna got had hadn
half has hasn have haven having he hello hence her here hers herself hey hi him himself his hm
hmm how however i if in indeed instead into is isn it its itself just least less let ll m
many may maybe me might mine more moreover most much must my myself n near neither never
nevertheless next no nobody none nor not nothing now nowhere o of off often oh ok okay on once
one ones only onto or other others otherwise ought our ours ourselves out over own per perhaps
please quite rather re really s same shall she should shouldn since so some somebody somehow
someone something sometimes somewhere still such t than thank thanks that the their theirs them
themselves then there therefore these they this those though through thus till to together too
toward towards uh um under until unto up upon us ve very want was wasn we well were weren what
whatever when whenever where wherever whether which while who whoever whom whose why will with
within without won would wouldn ye yeah yes yet you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP.split())
_HIDDEN = (512, 128, 64)
_SHARE_HIDDEN = 512
_FEWEST = 5  # words that make a picture
_APART = 1e-5  # keeps the angle of a topic with itself where arccos has a slope
_UPDATES_A_RISE = 7.0  # of `kl_weight`: 7,000 updates give the code's (step - 3500) / 1000


def topical_words(vocabulary: Vocabulary, count: int) -> list[int]:
    """The numbers of the `count` most frequent words that are topical: letters, no stop word.

    As in the released code; that words are also stemmed, as the paper says, does not show in the
    topics that it prints.
    """
    words = enumerate(vocabulary.words[len(SPECIALS) :], len(SPECIALS))
    topical = (n for n, word in words if word.isalpha() and word not in STOP_WORDS)
    return list(islice(topical, count))


def kl_weight(step: int, updates: int) -> float:
    """The weight of the KL at update `step`: along a tanh, 1/2 at half of `updates`, then 1."""
    if step >= updates:
        return 1.0
    return (math.tanh(_UPDATES_A_RISE * (step / updates - 0.5)) + 1) / 2


def _exact(x: Tensor) -> torch.autocast:
    # bfloat16 is too coarse for exponentials and sums over a conversation, and little is saved.
    return torch.autocast(x.device.type, enabled=False)


def _network(sizes: tuple[int, ...], dropout: float) -> nn.Sequential:
    """Linear layers with tanh behind each, dropout before the tanh of all but the last."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), Dropout(dropout), nn.Tanh()]
    del layers[-2]
    return nn.Sequential(*layers)


class BagGaussian(nn.Module):
    """A normal distribution of nu from a bag of words.

    Args:
        words: C, size of the bag.
        latent: size of nu.
        dropout: inside its network.
    """

    def __init__(self, words: int, latent: int, dropout: float) -> None:
        super().__init__()
        self.network = _network((words, *_HIDDEN, words), dropout)
        self.mean = nn.Linear(words, latent)
        self.log_variance = nn.Linear(words, latent)

    def forward(self, bag: Tensor) -> Gaussian:
        """(B, C) counts -> nu of (B, latent)."""
        with _exact(bag):
            hidden = self.network(bag)
            return Gaussian(self.mean(hidden), self.log_variance(hidden))


class TopicInferrer(nn.Module):
    """The topics and how they are inferred.

    Args:
        numbers: the C topical words, by their number in the vocabulary.
        vocabulary: V.
        topics: K.
        latent: size of nu.
        embedding: H, size of the space of topics and topical words.
        dropout: inside the networks.
    """

    place: Tensor

    def __init__(
        self,
        numbers: list[int],
        vocabulary: int,
        topics: int,
        latent: int,
        embedding: int,
        dropout: float,
    ) -> None:
        super().__init__()
        count = len(numbers)
        self.numbers = numbers
        place = torch.full((vocabulary,), count)
        place[torch.tensor(numbers)] = torch.arange(count)
        self.register_buffer("place", place, persistent=False)  # C for words that are not topical
        self.prior = BagGaussian(count, latent, dropout)
        self.shares = _network((latent, _SHARE_HIDDEN, topics), dropout)
        self.topics = nn.Parameter(torch.empty(topics, embedding))  # Lambda
        self.words = nn.Parameter(torch.empty(count, embedding))  # F
        for matrix in (self.topics, self.words):
            nn.init.uniform_(matrix, -(embedding**-0.5), embedding**-0.5)

    def bag(self, *tokens: Tensor) -> Tensor:
        """How often each topical word stands in (B, S) tokens, together (B, C)."""
        places = self.place[torch.cat(tokens, 1)]
        count = len(self.numbers)
        bag = self.words.new_zeros(len(places), count + 1)
        return bag.scatter_add_(1, places, torch.ones_like(places, dtype=bag.dtype))[:, :count]

    def theta(self, nu: Tensor) -> Tensor:
        """(B, latent) -> shares of the topics (B, K), which sum to 1."""
        with _exact(nu):
            shares = self.shares(nu)
            return F.layer_norm(shares, shares.shape[-1:]).softmax(-1)

    def word_logs(self, theta: Tensor) -> Tensor:
        """(B, K) -> log-probabilities of the topical words (B, C): a product of experts."""
        size = self.topics.shape[-1:]
        with _exact(theta):
            mixed = F.layer_norm(theta @ self.topics, size)
            return (mixed @ F.layer_norm(self.words, size).T).log_softmax(-1)

    def words_nll(self, bag: Tensor, nu: Tensor) -> Tensor:
        """Negative log-likelihood (B,) of the words (B, C) under nu (B, latent)."""
        return -(bag * self.word_logs(self.theta(nu))).sum(-1)

    def closeness(self) -> Tensor:
        """Variance minus mean of the angles between all pairs of topics."""
        unit = F.normalize(self.topics, dim=-1)
        own = _APART * torch.eye(len(unit), dtype=unit.dtype, device=unit.device)
        angles = ((unit @ unit.T).abs() - own).clamp(max=1 - _APART).arccos()
        return angles.var(correction=0) - angles.mean()

    @torch.no_grad()
    def start_from(self, table: Tensor) -> None:
        """Takes the vectors of its words from a table (V, H) of all."""
        self.words.copy_(table[self.numbers])

    @torch.no_grad()
    def plane(self, lists: Sequence[Sequence[int]]) -> list[list[tuple[float, float]]]:
        """Where t-SNE puts the words of `lists` in a plane (Figure 4); none of fewer than five."""
        from sklearn.manifold import TSNE

        flat = [number for numbers in lists for number in numbers]
        if len(flat) < _FEWEST:
            return []
        vectors = self.words[self.place[torch.tensor(flat, device=self.place.device)]]
        vectors = F.layer_norm(vectors, vectors.shape[-1:]).double().cpu()  # as they are compared
        # The exact method, so that the number of threads changes nothing.
        sought = TSNE(perplexity=min(30, (len(flat) - 1) / 3), method="exact", random_state=0)
        spots = iter(
            [(round(x, 4), round(y, 4)) for x, y in sought.fit_transform(vectors).tolist()]
        )
        return [[next(spots) for _ in numbers] for numbers in lists]

    def lists(self, count: int) -> list[list[int]]:
        """For each topic the numbers in the vocabulary of its `count` likeliest words."""
        best = (self.topics @ self.words.T).topk(min(count, len(self.numbers))).indices
        return [[self.numbers[i] for i in row] for row in best.tolist()]
