"""From probabilities to words, for every model alike (models.md 0.8).

Greedy, temperature, top-k and top-p choose one token at a time; beam search keeps the best
hypotheses. A sampled token is the inverse of the cumulative distribution at a uniform number
that depends on (seed, example id, position) only, so texts do not depend on batch size or order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, State
from dialbench.neural.randomness import uniforms
from dialbench.records import Decoding
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP, UNK

_NEVER = [PAD, UNK, BOS, SEP]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished response of beam search: its tokens without EOS and its log probability."""

    tokens: tuple[int, ...]
    log_probability: float
    length: int

    @property
    def score(self) -> float:
        """Log probability per token, EOS counted."""
        return self.log_probability / self.length


@torch.inference_mode()
def decode(model: DialogueModel, batch: Batch, decoding: Decoding, limit: int) -> list[list[int]]:
    """One response for each context of the batch.

    Args:
        model: in eval mode.
        batch: B contexts; its seed and ids decide what is drawn.
        decoding: how words are chosen.
        limit: the most tokens a response may have.

    Returns:
        B lists of token numbers without EOS; empty where EOS came first.
    """
    if decoding.method == "beam":
        best = beam_search(model, batch, int(decoding.value), limit)
        return [list(hypotheses[0].tokens) for hypotheses in best]
    return _one_by_one(model, batch, decoding, limit)


def _one_by_one(
    model: DialogueModel, batch: Batch, decoding: Decoding, limit: int
) -> list[list[int]]:
    device = batch.source.device
    draws = None
    if decoding.method != "greedy":
        draws = uniforms(batch.seed or 0, "words", batch.ids, limit).to(device)
    state = model.start(batch)
    words = torch.full((len(batch), limit), EOS, device=device)
    active = torch.arange(len(batch), device=device)
    tokens = torch.full((len(batch),), BOS, device=device)
    for position in range(limit):
        logits, state = model.step(tokens, state)
        draw = None if draws is None else draws[active, position]
        tokens = choose(_allowed(logits), decoding, draw)
        words[active, position] = tokens
        tokens, active, state = _drop_finished(tokens, active, state)
        if not len(active):
            break
    return [_until_end(row) for row in words.tolist()]


def _drop_finished(tokens: Tensor, active: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
    # Copying the state costs about as much as a step, so a quarter must have finished first.
    going = tokens.ne(EOS)
    if going.sum() > 0.75 * len(going):
        return tokens, active, state
    rows = going.nonzero().squeeze(1)
    return tokens[rows], active[rows], state.keep(rows)


def _until_end(row: list[int]) -> list[int]:
    return row[: row.index(EOS)] if EOS in row else row


def _allowed(logits: Tensor) -> Tensor:
    logits = logits.float() if logits.dtype != torch.float64 else logits
    logits[:, _NEVER] = -torch.inf
    return logits


def choose(logits: Tensor, decoding: Decoding, draw: Tensor | None) -> Tensor:
    """The next token of each row.

    Args:
        logits: (N, V); -inf is never chosen.
        decoding: greedy, sample, top-k or top-p.
        draw: (N,) uniform numbers in [0, 1); not needed for greedy.

    Returns:
        (N,) token numbers.
    """
    if draw is None:
        return logits.argmax(-1)
    logits = logits.double()
    if decoding.method == "sample":
        # A draw of zero must still fall on a word that can be chosen.
        cumulative = (logits / decoding.value).softmax(-1).cumsum(-1)
        return _inverse(cumulative, draw)
    if decoding.method == "top-k":
        kept, words = logits.topk(min(int(decoding.value), logits.shape[-1]), -1)
        probabilities = kept.softmax(-1)
    else:
        probabilities, words = logits.softmax(-1).sort(dim=-1, descending=True, stable=True)
        before = probabilities.cumsum(-1) - probabilities
        # The word that crosses p is kept.
        probabilities = probabilities.masked_fill(before >= decoding.value, 0.0)
    picked = _inverse(probabilities.cumsum(-1), draw)
    return words.gather(-1, picked[:, None]).squeeze(-1)


def _inverse(cumulative: Tensor, draw: Tensor) -> Tensor:
    # The first position whose cumulative mass exceeds the draw; never one of zero mass.
    target = draw[:, None].to(cumulative.dtype) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, target, right=True).squeeze(-1)


@torch.inference_mode()
def beam_search(
    model: DialogueModel, batch: Batch, width: int, limit: int
) -> list[list[Hypothesis]]:
    """The finished hypotheses of each context, best first; at least one, at most `width`.

    An example is done when `width` hypotheses have ended; what is unfinished at `limit` tokens
    counts as finished there. Ranked by log probability per token, EOS counted.
    """
    device, size = batch.source.device, len(batch)
    state = model.start(batch).widen(width)
    sums = torch.full((size, width), -torch.inf, dtype=torch.float64, device=device)
    sums[:, 0] = 0.0  # all beams of an example start alike: only one may branch
    history = torch.empty(size, width, 0, dtype=torch.long, device=device)
    tokens = torch.full((size * width,), BOS, device=device)
    active = list(range(size))
    finished: list[list[Hypothesis]] = [[] for _ in range(size)]
    for length in range(1, limit + 1):
        logits, state = model.step(tokens, state)
        scores = _allowed(logits).double().log_softmax(-1).view(len(active), width, -1)
        sums, parents, words = _best(scores + sums[:, :, None], 2 * width)
        history = history.gather(1, parents[:, :, None].expand(-1, -1, length - 1))
        history = torch.cat([history, words[:, :, None]], -1)
        _collect(finished, active, sums, history, width, ends_only=length < limit)
        alive = _first_alive(words, width)
        sums, parents = sums.gather(1, alive), parents.gather(1, alive)
        history = history.gather(1, alive[:, :, None].expand(-1, -1, length))
        going = [i for i, name in enumerate(active) if len(finished[name]) < width]
        if not going or length == limit:
            break
        rows = torch.arange(len(active), device=device)[:, None] * width + parents
        state = state.reorder(rows.flatten())
        if len(going) < len(active):
            kept = torch.tensor(going, device=device)
            state, sums, history = state.keep(kept), sums[kept], history[kept]
            active = [active[i] for i in going]
        tokens = history[:, :, -1].flatten()
    return [sorted(f, key=lambda h: -h.score)[:width] for f in finished]


def _best(scores: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    # scores (B, width, V) -> the best `count` continuations: sums, parent beams, words
    examples, width, size = scores.shape
    sums, index = scores.view(examples, width * size).topk(min(count, width * size), -1)
    return sums, index // size, index % size


def _first_alive(words: Tensor, width: int) -> Tensor:
    # The first `width` continuations that do not end; 2 * width candidates always hold them.
    order = words.eq(EOS).int().argsort(dim=-1, stable=True)
    return order[:, :width]


def _collect(
    finished: list[list[Hypothesis]],
    active: list[int],
    sums: Tensor,
    history: Tensor,
    width: int,
    *,
    ends_only: bool,
) -> None:
    # Only continuations among the best `width` may end, so that width 1 is greedy search.
    for i, name in enumerate(active):
        for total, words in zip(sums[i, :width].tolist(), history[i, :width].tolist(), strict=True):
            ended = words[-1] == EOS
            if total == -torch.inf or len(finished[name]) >= width or (ends_only and not ended):
                continue
            tokens = tuple(words[:-1] if ended else words)
            finished[name].append(Hypothesis(tokens, total, len(words)))
