"""Decoding: from probabilities to words, the same for every model (docs/systems.md).

Greedy, temperature, top-k and top-p choose one token at a time; beam search keeps the best
hypotheses. A sampled token is the inverse of the cumulative distribution at a uniform number
that depends on (seed, example id, position) only, so texts do not depend on batch size or order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel
from dialbench.neural.randomness import uniforms
from dialbench.records import Decoding
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP, UNK

_NEVER_GENERATED = (PAD, UNK, BOS, SEP)
_LIKELIEST = 1_024  # words that nearly always hold the nucleus; sorting all is slow
_PLAIN = Decoding()


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished response of beam search: its tokens without EOS and its log probability."""

    tokens: tuple[int, ...]
    log_probability: float
    length: int
    penalty: float = 1.0

    @property
    def score(self) -> float:
        """Log probability per token, EOS counted; the length to the power of `penalty`."""
        return self.log_probability / self.length**self.penalty  # type: ignore[no-any-return]


@torch.no_grad()
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
        best = beam_search(model, batch, int(decoding.value), limit, decoding)
        return [list(hypotheses[0].tokens) for hypotheses in best]
    return _decode_token_by_token(model, batch, decoding, limit)


def _decode_token_by_token(
    model: DialogueModel, batch: Batch, decoding: Decoding, limit: int
) -> list[list[int]]:
    device = batch.source.device
    draws = None
    if decoding.method != "greedy":
        draws = uniforms(batch.seed or 0, "words", batch.ids, limit).to(device)  # (B, limit)
    state = model.start(batch)
    words = torch.full((len(batch), limit), EOS, device=device)
    active = torch.arange(len(batch), device=device)
    tokens = torch.full((len(batch),), BOS, device=device)
    for position in range(limit):
        logits, state = model.step(tokens, state)
        draw = None if draws is None else draws[active, position]
        possible = _mask_repeats(
            _mask_forbidden(logits), words[active, :position], decoding.no_repeat
        )
        chosen = choose(possible, decoding, draw)
        tokens = torch.where(tokens.eq(EOS), EOS, chosen)  # what has ended stays ended
        words[active, position] = tokens
        unfinished = tokens.ne(EOS).nonzero().squeeze(1)
        if not len(unfinished):
            break
        if _should_drop_finished(len(unfinished), len(active)):
            tokens, active, state = tokens[unfinished], active[unfinished], state.keep(unfinished)
    return [_before_eos(row) for row in words.tolist()]


def _should_drop_finished(going: int, total: int) -> bool:
    # Copying the state costs about as much as a step, so a quarter must have finished first.
    return going <= 0.75 * total


def _before_eos(row: list[int]) -> list[int]:
    return row[: row.index(EOS)] if EOS in row else row


def _mask_forbidden(logits: Tensor) -> Tensor:
    # Written over, as `DialogueModel.step` says; one column at a time needs no index on a GPU.
    logits = logits.float() if logits.dtype != torch.float64 else logits
    for word in _NEVER_GENERATED:
        logits[:, word] = -torch.inf
    return logits


def _mask_repeats(logits: Tensor, history: Tensor, size: int) -> Tensor:
    # (N, V) without the words that would write `size` words of (N, t) once more.
    if not 0 < size <= history.shape[1]:
        return logits
    windows = history.unfold(1, size, 1)  # (N, t - size + 1, size)
    latest = history[:, history.shape[1] - size + 1 :]  # what a further word would complete
    repeated = (windows[..., :-1] == latest[:, None]).all(-1)
    # PAD, which is forbidden anyway, stands where a window is no repetition.
    return logits.scatter(1, windows[..., -1].where(repeated, PAD), -torch.inf)


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
    temperature = decoding.value if decoding.method == "sample" else 1.0
    probabilities = (logits.double() / temperature).softmax(-1)
    if decoding.method == "top-k":
        probabilities = _keep_only(
            probabilities, *probabilities.topk(min(int(decoding.value), probabilities.shape[-1]))
        )
    elif decoding.method == "top-p":
        probabilities = _keep_only(probabilities, *_nucleus(probabilities, decoding.value))
    # The first word whose cumulative mass exceeds the draw: never one without mass.
    cumulative = probabilities.cumsum(-1)  # (N, V)
    # (N, 1), of a mass that may differ from 1 by rounding
    threshold = draw[:, None] * cumulative[:, -1:]
    return torch.searchsorted(cumulative, threshold, right=True).squeeze(-1)


def _keep_only(probabilities: Tensor, kept: Tensor, words: Tensor) -> Tensor:
    return torch.zeros_like(probabilities).scatter_(-1, words, kept)


def _nucleus(probabilities: Tensor, p: float) -> tuple[Tensor, Tensor]:
    # The fewest words that together reach p, by falling mass; the others' mass is zero.
    kept, words = probabilities.topk(min(_LIKELIEST, probabilities.shape[-1]))
    if bool((kept.sum(-1) < p).any()):  # rarely: sorting all words is slow
        kept, words = probabilities.sort(descending=True)
    mass_before = kept.cumsum(-1) - kept  # of the words above it: the one that crosses p stays
    return kept.masked_fill(mass_before >= p, 0.0), words


@torch.no_grad()
def beam_search(
    model: DialogueModel, batch: Batch, width: int, limit: int, decoding: Decoding = _PLAIN
) -> list[list[Hypothesis]]:
    """The hypotheses of each context, best first; at least one, at most `width`.

    A hypothesis that ends keeps its place, and the others go on in the places left, so that short
    improbable ones cannot crowd out a longer probable one. What is unfinished at `limit` tokens
    ends there. Ranked by log probability per token, EOS counted, or as the length penalty of
    `decoding` says.
    """
    device, size = batch.source.device, len(batch)
    state = model.start(batch).widen(width)
    sums = torch.full((size, width), -torch.inf, dtype=torch.float64, device=device)
    sums[:, 0] = 0.0  # all beams of an example start alike: only one may branch
    free_beams = torch.full((size, 1), width, device=device)
    history = torch.empty(size, width, 0, dtype=torch.long, device=device)
    tokens = torch.full((size * width,), BOS, device=device)
    active = list(range(size))
    finished: list[list[Hypothesis]] = [[] for _ in range(size)]
    for length in range(1, limit + 1):
        logits, state = model.step(tokens, state)
        scores = _mask_forbidden(logits).log_softmax(-1)  # (B * width, V)
        scores = _mask_repeats(scores, history.flatten(0, 1), decoding.no_repeat)
        sums, parents, words = _best_continuations(scores, sums)
        sums = sums.masked_fill(torch.arange(width, device=device) >= free_beams, -torch.inf)
        history = history.gather(1, parents[:, :, None].expand(-1, -1, length - 1))
        history = torch.cat([history, words[:, :, None]], -1)
        ended = sums.isfinite() & (words.eq(EOS) if length < limit else True)
        _collect_finished(finished, active, sums, history, ended)
        free_beams = free_beams - ended.sum(1, keepdim=True)
        sums = sums.masked_fill(ended, -torch.inf)
        unfinished = sums.isfinite().any(1).nonzero().squeeze(1)
        if not len(unfinished):
            break
        rows = torch.arange(len(active), device=device)[:, None] * width + parents
        state = state.reorder(rows.flatten())
        if _should_drop_finished(len(unfinished), len(active)):
            state, sums, history = state.keep(unfinished), sums[unfinished], history[unfinished]
            free_beams, active = free_beams[unfinished], [active[i] for i in unfinished.tolist()]
        tokens = history[:, :, -1].flatten()
    penalised = [[replace(h, penalty=decoding.length) for h in ended] for ended in finished]
    return [sorted(hypotheses, key=lambda h: -h.score) for hypotheses in penalised]


def _best_continuations(scores: Tensor, sums: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # The best `width` continuations of the beams (B, width), best first: sums, parent beams, words.
    # None can lie outside the best `width` of its own beam.
    width = sums.shape[1]
    count = min(width, scores.shape[-1])
    word_scores, words = scores.topk(count)  # (B * width, count)
    totals = word_scores.view(-1, width, count) + sums[:, :, None]
    sums, index = totals.flatten(1).topk(width)
    return sums, index // count, words.view(len(sums), -1).gather(1, index)


def _collect_finished(
    finished: list[list[Hypothesis]],
    active: list[int],
    sums: Tensor,
    history: Tensor,
    ended: Tensor,
) -> None:
    positions = ended.nonzero(as_tuple=True)
    entries = zip(
        positions[0].tolist(), history[positions].tolist(), sums[positions].tolist(), strict=True
    )
    for i, words, total in entries:
        tokens = tuple(words[:-1] if words[-1] == EOS else words)
        finished[active[i]].append(Hypothesis(tokens, total, len(words)))
