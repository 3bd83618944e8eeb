"""Seeds and generators."""

from __future__ import annotations

import hashlib

import torch

from dialbench.neural.randomness import generator, normals, seed_of, uniforms


def test_seed_is_the_head_of_a_sha256():
    digest = hashlib.sha256(b"7\x1finfer\x1fdialogue-3").hexdigest()
    assert seed_of(7, "infer", "dialogue-3") == int(digest[:16], 16) // 2


def test_parts_do_not_run_together():
    assert len({seed_of("a", "b"), seed_of("ab"), seed_of("a", "b", ""), seed_of("b", "a")}) == 4


def test_seeds_fit_a_generator():
    seeds = [seed_of("x", i) for i in range(200)]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert len(set(seeds)) == 200
    assert generator("x", 1).initial_seed() == seed_of("x", 1)


def test_rows_belong_to_their_ids():
    for draw in (uniforms, normals):
        both = draw(1, "words", ["one", "two"], 5)
        assert both.shape == (2, 5)
        assert torch.equal(draw(1, "words", ["two"], 5), both[1:])
        assert not torch.equal(both[0], both[1])
        assert not torch.equal(draw(2, "words", ["two"], 5), both[1:])
        assert not torch.equal(draw(1, "latent", ["two"], 5), both[1:])


def test_distributions():
    flat = uniforms(1, "words", [str(i) for i in range(100)], 100)
    assert flat.dtype == torch.float64
    assert flat.min() >= 0.0
    assert flat.max() < 1.0
    assert abs(flat.mean() - 0.5) < 5 / (12 * 10_000) ** 0.5
    bell = normals(1, "latent", [str(i) for i in range(100)], 100)
    assert abs(bell.mean()) < 5 / 100
    assert abs(bell.std() - 1) < 5 / 20_000**0.5


def test_a_long_draw_begins_like_a_short_one():
    assert torch.equal(uniforms(1, "w", ["a"], 40)[:, :8], uniforms(1, "w", ["a"], 8))
