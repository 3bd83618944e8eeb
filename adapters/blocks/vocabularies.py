"""A vocabulary for each message: which words it holds, and what words cost within it (DVS2S).

Throughout, content words are numbered on their own: place c of a tensor (..., C) is the word
`content[c]` of the V words of the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.text.vocabulary import PAD

MissingWord = Literal["floor", "force"]


class WordPredictor(nn.Module):
    """beta_c = sigmoid(W_c' h_t + b_c) for content words c (eq. 8); function words are always in.

    Args:
        inputs: size of h_t.
        vocabulary: V.
        function: the numbers of the function words, specials among them.
    """

    function: Tensor
    content: Tensor

    def __init__(self, inputs: int, vocabulary: int, function: Sequence[int]) -> None:
        super().__init__()
        always = set(function)
        content = [word for word in range(vocabulary) if word not in always]
        self.vocabulary = vocabulary
        self.register_buffer(
            "function", torch.tensor(sorted(always), dtype=torch.long), persistent=False
        )
        self.register_buffer("content", torch.tensor(content, dtype=torch.long), persistent=False)
        self.odds = nn.Linear(inputs, len(content))

    def forward(self, message: Tensor) -> Tensor:
        """(B, 2h) message states h_t -> (B, C) log odds of beta."""
        odds = self.odds(message)  # log(beta / (1 - beta)), (B, C)
        return odds if odds.dtype == torch.float64 else odds.float()  # type: ignore[no-any-return]

    @torch.no_grad()
    def start_from(self, counts: Tensor, examples: int) -> None:
        """Initialises beta to the share of responses that contain each word, for any message.

        Args:
            counts: (V,) in how many of the `examples` responses each word occurs.
            examples: how many responses there are.
        """
        held = counts.to(self.odds.bias).index_select(0, self.content)
        self.odds.bias.copy_(torch.log((held + 0.5) / (examples - held + 0.5)))
        self.odds.weight.zero_()

    def contained_words(self, target: Tensor) -> Tensor:
        """(B, T) tokens -> (B, C), 1 where a content word is among them (t_j), else 0."""
        every = torch.zeros(len(target), self.vocabulary, device=target.device)  # (B, V)
        return every.scatter_(1, target, 1.0).index_select(1, self.content)

    def best(self, odds: Tensor, count: int) -> Tensor:
        """The places of the `count` likeliest content words, likeliest first, ties by number."""
        return odds.argsort(stable=True, dim=-1, descending=True)[:, :count]

    def numbers(self, best: Tensor) -> Tensor:
        """Places of content words (B, N) -> numbers of a whole vocabulary (B, functions + N)."""
        function = self.function.expand(len(best), -1)
        return torch.cat([function, self.content[best]], 1)

    def full_mask(self, chosen: Tensor) -> Tensor:
        """Chosen content words (B, C, S), 0 or 1 -> all words (B, V, S), function words 1."""
        every = torch.ones(
            len(chosen), self.vocabulary, chosen.shape[2], dtype=chosen.dtype, device=chosen.device
        )
        return every.index_copy_(1, self.content, chosen)


@dataclass(frozen=True)
class WordCosts:
    """Log-probabilities of the words of B responses within S vocabularies each.

    Attributes:
        logs: (B, T, S) log p(y_j | y_<j, T_s, X); 0 for a word outside T_s and on PAD.
        missing: (B, T, S) where a word is outside T_s.
        lengths: (B,) real tokens, EOS counted.
    """

    logs: Tensor
    missing: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, logits: Tensor, target: Tensor, vocabularies: Tensor) -> WordCosts:
        """A softmax (eq. 6) within each vocabulary.

        Args:
            logits: (B, T, V) over all words.
            target: (B, T) the responses' tokens.
            vocabularies: (B, V, S), 1 for the words of T_s, else 0.
        """
        real = target.ne(PAD)[:, :, None]  # (B, T, 1)
        highest = logits.detach().amax(-1, keepdim=True)
        # One product gives the normalisers of all S softmaxes, where masking would need S copies.
        mass = (logits - highest).exp() @ vocabularies.to(logits.dtype)  # (B, T, S)
        target_logits = logits.gather(2, target[:, :, None]) - highest  # (B, T, 1)
        words = target[:, :, None].expand(-1, -1, vocabularies.shape[2])
        missing = vocabularies.gather(1, words).eq(0) & real
        tiny = torch.finfo(mass.dtype).tiny
        logs = (target_logits - mass.clamp(min=tiny).log()).masked_fill(missing | ~real, 0.0)
        return cls(logs, missing, target.ne(PAD).sum(1))

    def floored(self, words: int) -> Tensor:
        """(B, S) log p(Y | T_s, X), a word outside T_s having probability 1 / `words`."""
        return self.logs.sum(1) - self.missing.sum(1) * math.log(words)


def log_probability(odds: Tensor, chosen: Tensor) -> Tensor:
    """The log probability of each T_s given X, over the content words, (B, S).

    Args:
        odds: (B, C) log odds of each word.
        chosen: (B, C, S), 1 for the words of T_s, else 0.
    """
    within = torch.einsum("bcs,bc->bs", chosen.to(odds.dtype), odds)  # sum over the words of T_s
    return within - F.softplus(odds).sum(1, keepdim=True)  # log prod beta^t (1 - beta)^(1 - t)
