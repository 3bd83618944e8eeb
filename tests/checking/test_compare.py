"""Every kind of difference, on snapshots made by hand; and what is no difference."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from scipy import stats

from dialbench.checking.compare import compare
from dialbench.checking.findings import Cause, CellChange, Comparison
from dialbench.store.baselines import Baseline, Entry, StoredResponse

Make = Callable[..., Entry]
Snap = Callable[..., Baseline]
GPU = {"device": "cuda (Fast)", "dtype": "bfloat16", "threads": 1, "torch": "2.6.0"}


@pytest.fixture
def moved(entry: Make, snapshot: Snap) -> Callable[[Any, Any], Comparison]:
    """Compares one cell with another of the same row and seed."""

    def go(old: dict[str, Any], new: dict[str, Any]) -> Comparison:
        return compare(snapshot(entry(scores=old)), snapshot(entry(scores=new)))

    return go


def only(comparison: Comparison) -> CellChange:
    ((_, cell),) = comparison.cells()
    return cell


def test_the_same_is_no_difference(entry: Make, snapshot: Snap) -> None:
    comparison = compare(snapshot(entry(), entry("other")), snapshot(entry("other"), entry()))
    assert comparison.ok
    assert [row.cells_compared for row in comparison.rows] == [2, 2]
    assert [row.responses_compared for row in comparison.rows] == [3, 3]
    assert comparison.causes() == {}


@pytest.mark.parametrize("metric", ["length", "dist-2", "novelty", "generic-rate"])
def test_counts_are_compared_exactly(moved: Callable[..., Comparison], metric: str) -> None:
    next_float = math.nextafter(0.3, 1.0)
    assert moved({metric: 0.3}, {metric: 0.3}).ok
    cell = only(moved({metric: 0.3}, {metric: next_float}))
    assert (cell.what, cell.old, cell.new) == ("value", (0.3,), (next_float,))


@pytest.mark.parametrize("metric", ["bleu-1", "intra-dist-1", "emb-average", "mtld"])
def test_other_metrics_may_round(moved: Callable[..., Comparison], metric: str) -> None:
    assert moved({metric: 0.3}, {metric: 0.3 * (1 + 0.9e-6)}).ok
    assert not moved({metric: 0.3}, {metric: 0.3 * (1 + 1.1e-6)}).ok
    assert not moved({metric: 0.0}, {metric: 1e-300}).ok


def test_a_value_that_vanishes_or_appears_is_a_difference(
    moved: Callable[..., Comparison],
) -> None:
    assert moved({"mtld": None}, {"mtld": None}).ok
    for old, new in ((0.5, None), (None, 0.5)):
        cell = only(moved({"mtld": old}, {"mtld": new}))
        assert (cell.distance, cell.deviations) == (None, None)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("signature", {"signature": "bleu-1|v:2"}),
        ("responses counted", {"n": 2}),
        ("interval", {"interval": (0.1, 0.5)}),
        ("interval", {"interval": None}),
    ],
)
def test_a_cell_is_more_than_its_value(
    moved: Callable[..., Comparison], what: str, change: dict[str, Any]
) -> None:
    cell = {"value": 0.25, "interval": (0.1, 0.4)}
    comparison = moved({"bleu-1": cell}, {"bleu-1": cell | change})
    assert only(comparison).what == what
    causes = [cause.kind for cause in comparison.causes()]
    assert causes == (["signature"] if what == "signature" else [])


def test_a_move_is_told_in_half_widths_of_the_interval_where_there_is_one_seed(
    moved: Callable[..., Comparison],
) -> None:
    old = {"value": 0.25, "interval": (0.15, 0.35)}
    cell = only(moved({"bleu-1": old}, {"bleu-1": old | {"value": 0.5}}))
    assert cell.distance == pytest.approx(0.25)
    assert (cell.unit, cell.deviations) == ("interval", pytest.approx(2.5))


def test_an_interval_of_rounding_alone_is_no_unit(
    moved: Callable[..., Comparison],
) -> None:
    old = {"value": 4.0, "interval": (4.0 - 1e-15, 4.0 + 1e-15)}
    assert only(moved({"length": old}, {"length": old | {"value": 4.5}})).deviations is None


def test_a_move_is_told_in_deviations_of_the_seeds_where_there_are_several(
    entry: Make, snapshot: Snap
) -> None:
    values = (0.1, 0.2, 0.3)  # of standard deviation 0.1
    old = [entry(seed=s, scores={"bleu-1": v}) for s, v in enumerate(values, 1)]
    new = [*old[:2], entry(seed=3, scores={"bleu-1": 0.55})]
    cell = only(compare(snapshot(*old), snapshot(*new)))
    assert (cell.unit, cell.deviations) == ("seeds", pytest.approx(2.5))


def test_rows_and_columns_that_are_missing_or_added_are_differences(
    entry: Make, snapshot: Snap
) -> None:
    one, two = snapshot(entry()), snapshot(entry(), entry("other"))
    (row,) = compare(two, one).failing
    assert row.name.startswith("other on demo")
    assert row.problems == ("the row is missing",)
    assert compare(one, two).failing[0].problems == ("the row was added",)
    fewer = snapshot(entry(scores={"dist-1": 0.5}))
    assert compare(one, fewer).columns == ("column bleu-1 is missing",)
    assert compare(fewer, one).columns == ("column bleu-1 was added",)
    assert not compare(one, fewer).ok


def test_a_cell_that_one_row_lacks_is_a_difference_of_that_row(entry: Make, snapshot: Snap) -> None:
    old = snapshot(entry(), entry("other"))
    comparison = compare(old, snapshot(entry(), entry("other", scores={"dist-1": 0.5})))
    assert comparison.columns == ()
    assert [row.problems for row in comparison.failing] == [("metrics missing: bleu-1",)]


def test_a_row_without_any_scores_does_not_pass(entry: Make, snapshot: Snap) -> None:
    comparison = compare(snapshot(entry()), snapshot(entry(scores={})))
    assert comparison.failing[0].problems == ("the row is not scored",)


def test_a_row_that_failed_says_why(entry: Make, snapshot: Snap) -> None:
    broken = entry(
        status="failed",
        reason="out of memory",
        responses=None,
        scores={},
        device="",
        circumstances={},
    )
    comparison = compare(snapshot(entry()), snapshot(broken))
    assert comparison.failing[0].problems == ("the row is failed, not done: out of memory",)
    assert comparison.causes() == {}


def test_one_response_that_changed_is_a_difference_though_no_cell_moved(
    entry: Make, snapshot: Snap
) -> None:
    comparison = compare(snapshot(entry()), snapshot(entry(texts=("yes", "nope", "i do"))))
    ((_, change),) = comparison.responses()
    assert change.example == "d-2"
    assert change.old is not None
    assert change.new is not None
    assert (change.old.text, change.new.text) == ("no", "nope")
    assert not list(comparison.cells())


def test_examples_that_are_answered_on_one_side_only(entry: Make, snapshot: Snap) -> None:
    comparison = compare(snapshot(entry()), snapshot(entry(texts=("yes", "no"))))
    ((_, change),) = comparison.responses()
    assert (change.example, change.new) == ("d-3", None)


def test_where_texts_may_not_be_kept_neither_side_is_shown(entry: Make, snapshot: Snap) -> None:
    old, new = entry(kept=False), entry(texts=("yes", "no no", "i do"))
    ((row, change),) = compare(snapshot(old), snapshot(new)).responses()
    assert change.old is not None
    assert change.new is not None
    assert (change.old.words, change.old.text) == (1, None)
    assert (change.new.words, change.new.text) == (2, None)
    assert row.texts_are_local


def test_a_local_run_gives_the_old_texts_it_still_has(entry: Make, snapshot: Snap) -> None:
    old, new = entry(kept=False), entry(texts=("YES", "NO", "i do"))
    local = entry(texts=("yes", "something else", "i do"))
    comparison = compare(snapshot(old), snapshot(new), snapshot(local))
    first, second = (change for _, change in comparison.responses())
    assert (first.old, first.new) == (
        StoredResponse("8a798890fe93", 1, "yes"),
        StoredResponse(first.new.sha256 if first.new else "", 1, "YES"),
    )
    assert second.old is not None
    assert second.old.text is None


def test_other_weights_are_a_difference_though_nothing_moved(entry: Make, snapshot: Snap) -> None:
    other = entry(weights={"model.safetensors": "01"})
    comparison = compare(snapshot(entry()), snapshot(other))
    (problem,) = comparison.failing[0].problems
    assert "model.safetensors differs" in problem


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"config": {"epochs": 3}}, Cause("settings", "epochs", "2", "3")),
        ({"data": "ab"}, Cause("data", "training data", "aa", "ab")),
        (
            {"circumstances": {"dtype": "float32", "threads": 1, "torch": "2.7.0"}},
            Cause("library", "torch", "2.6.0", "2.7.0"),
        ),
    ],
)
def test_causes_are_no_differences_but_are_told(
    entry: Make, snapshot: Snap, change: dict[str, Any], cause: Cause
) -> None:
    silent = compare(snapshot(entry()), snapshot(entry(**change)))
    assert silent.ok
    assert cause in silent.causes()
    loud = compare(snapshot(entry()), snapshot(entry(**change, scores={"dist-1": 1, "bleu-1": 1})))
    assert loud.causes()[cause] == ["echo on demo, greedy, quick, seed 1"]


def test_versions_and_commit_are_causes(entry: Make, snapshot: Snap) -> None:
    comparison = compare(
        snapshot(entry()), snapshot(entry(), commit="beef", torch="3", dialbench="9")
    )
    assert comparison.ok
    assert list(comparison.causes()) == [
        Cause("code", "dialbench", "0.1.0", "9"),
        Cause("library", "torch", "2.6.0", "3"),
        Cause("code", "commit", "c0ffee", "beef"),
    ]


def test_of_a_failing_comparison_only_the_failing_rows_give_causes(
    entry: Make, snapshot: Snap
) -> None:
    new = [entry(config={"epochs": 3}), entry("other", texts=("", "", ""))]
    assert compare(snapshot(entry(), entry("other")), snapshot(*new)).causes() == {}


def test_a_second_variant_of_a_row_is_an_added_row(entry: Make, snapshot: Snap) -> None:
    variant = entry(config={"epochs": 9}, scores={"dist-1": 0.9, "bleu-1": 0.9})
    comparison = compare(snapshot(entry()), snapshot(variant, entry()))
    assert [row.problems for row in comparison.failing] == [("the row was added",)]


def test_a_row_that_no_longer_competes_is_a_difference(entry: Make, snapshot: Snap) -> None:
    ranked, shown = snapshot(entry()), snapshot(entry(ranked=False))
    (row,) = compare(ranked, shown).failing
    assert row.problems == ("the row is not ranked, which it was",)
    (row,) = compare(shown, ranked).failing
    assert row.problems == ("the row is ranked, which it was not",)


def test_some_of_the_seeds_are_a_difference(entry: Make, snapshot: Snap) -> None:
    old = snapshot(entry(seed=1), entry(seed=2))
    assert compare(old, snapshot(entry(seed=1))).failing[0].problems == ("the row is missing",)
    assert compare(snapshot(entry(seed=1)), old).failing[0].problems == ("the row was added",)


# Across seeds and devices


def spread(values: tuple[float, ...], seeds: int, cells: int) -> float:
    """The prediction interval, from the textbook's formula."""
    n = len(values)
    mean = sum(values) / n
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1))
    t = stats.t.isf(0.05 / cells / 2, n - 1)
    return float(t * deviation * math.sqrt(1 / n + 1 / seeds))


VARYING = {1: 0.1, 2: 0.2, 3: 0.3}  # a value a seed, of standard deviation 0.1


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("share", [0.999, 1.001])
def test_other_seeds_pass_within_the_spread_of_the_baselines(
    entry: Make, snapshot: Snap, seeds: int, share: float
) -> None:
    values = (0.1, 0.2, 0.3, 0.2)
    old = [
        entry(seed=s, scores={"dist-1": v, "bleu-1": 0.5}) for s, v in enumerate(values, start=1)
    ]
    value = 0.2 + share * spread(values, seeds, cells=2)
    new = [
        entry(seed=s, texts=("x", "y", "z"), scores={"dist-1": value, "bleu-1": 0.5}, weights={})
        for s in range(10, 10 + seeds)
    ]
    comparison = compare(snapshot(*old), snapshot(*new))
    assert comparison.ok == (share < 1)
    assert "compared by the standard deviation over seeds 1, 2, 3, 4" in comparison.rows[0].notes[0]
    if not comparison.ok:
        cell = only(comparison)
        assert cell.metric == "dist-1"
        assert cell.tolerance == pytest.approx(spread(values, seeds, cells=2))


def test_a_seed_without_a_value_hides_no_move_of_the_others(entry: Make, snapshot: Snap) -> None:
    def seeds(numbers: range, *values: float | None) -> Any:
        return snapshot(
            *(entry(seed=s, scores={"dist-1": v}) for s, v in zip(numbers, values, strict=True))
        )

    old = seeds(range(1, 5), 0.1, 0.11, 0.12, None)
    assert compare(old, seeds(range(11, 15), 0.1, 0.11, 0.12, None)).ok
    assert only(compare(old, seeds(range(11, 15), 0.9, 0.9, 0.9, None))).what == "value"
    gone = only(compare(old, seeds(range(11, 15), 0.1, 0.11, 0.12, 0.11)))
    assert (gone.what, gone.old, gone.new) == ("seeds with a value", (3,), (4,))


def test_what_does_not_vary_over_seeds_may_not_move(entry: Make, snapshot: Snap) -> None:
    old = [entry(seed=s, scores={"dist-1": 0.5}) for s in (1, 2)]
    assert compare(snapshot(*old), snapshot(entry(seed=3, scores={"dist-1": 0.5}))).ok
    assert not compare(snapshot(*old), snapshot(entry(seed=3, scores={"dist-1": 0.51}))).ok


def test_one_seed_has_no_standard_deviation(entry: Make, snapshot: Snap) -> None:
    comparison = compare(
        snapshot(entry(seed=1)), snapshot(entry(seed=2, scores={"dist-1": 0.500001}))
    )
    assert not comparison.ok
    assert "no standard deviation to compare by" in comparison.rows[0].notes[0]


@pytest.mark.parametrize(
    "change",
    [
        {"device": "cpu (another)"},
        {"dtype": "bfloat16"},
        {"threads": 2},
        {"torch": "2.7.0"},
    ],
    ids=lambda change: str(*change),
)
def test_where_sums_round_otherwise_the_spread_decides_what_differs(
    entry: Make, snapshot: Snap, change: dict[str, Any]
) -> None:
    circumstances = entry().circumstances | change
    there = {"circumstances": circumstances, "device": circumstances["device"]}
    old = snapshot(*(entry(seed=s, scores={"dist-1": v}) for s, v in VARYING.items()))
    same = [entry(seed=s, scores={"dist-1": v}, **there) for s, v in VARYING.items()]
    exact = compare(old, snapshot(*same))
    assert exact.ok
    assert [row.notes for row in exact.rows] == [()] * 3
    near = {"scores": {"dist-1": 0.22}, "weights": {}, "texts": ("a", "b", "c")}
    comparison = compare(old, snapshot(*(entry(seed=s, **near, **there) for s in VARYING)))
    assert comparison.ok
    assert f"where sums round differently ({next(iter(change))})" in comparison.rows[0].notes[0]
    far = [entry(seed=s, scores={"dist-1": 9.0}, **there) for s in VARYING]
    assert not compare(old, snapshot(*far)).ok
    here = [entry(seed=s, **near) for s in VARYING]
    assert [row.notes for row in compare(old, snapshot(*here)).failing] == [()] * 3


def test_a_gpu_need_not_agree_with_itself(entry: Make, snapshot: Snap) -> None:
    there = {"circumstances": GPU, "device": GPU["device"]}
    old = [entry(seed=s, scores={"dist-1": v}, **there) for s, v in VARYING.items()]
    near = [entry(seed=s, scores={"dist-1": 0.22}, weights={}, **there) for s in VARYING]
    comparison = compare(snapshot(*old), snapshot(*near))
    assert comparison.ok
    assert "(on a GPU)" in comparison.rows[0].notes[0]


def test_rows_that_compute_no_sums_are_exact_everywhere(entry: Make, snapshot: Snap) -> None:
    plain = {"circumstances": {"device": "cpu"}, "device": "cpu", "weights": {}}
    old = snapshot(*(entry(seed=s, scores={"dist-1": v}, **plain) for s, v in VARYING.items()))
    new = [entry(seed=s, scores={"dist-1": v}, **plain) for s, v in VARYING.items()]
    new[0] = entry(seed=1, scores={"dist-1": VARYING[1]}, texts=("yes", "no", "we do"), **plain)
    ((row, change),) = compare(old, snapshot(*new, torch="9")).responses()
    assert (row.name[-6:], change.example) == ("seed 1", "d-3")


# Some of the baseline's seeds


def test_of_some_seeds_the_others_are_neither_missing_nor_added(
    entry: Make, snapshot: Snap
) -> None:
    three = snapshot(*(entry(seed=s, scores={"dist-1": v}) for s, v in VARYING.items()))
    two = snapshot(*(entry(seed=s, scores={"dist-1": VARYING.get(s, 0.7)}) for s in (2, 4)))
    assert len(compare(three, two).failing) == 3
    comparison = compare(three, two, seeds=[2])
    assert comparison.ok
    assert [(row.name[-6:], row.cells_compared) for row in comparison.rows] == [("seed 2", 1)]
    assert [r.problems for r in compare(three, two, seeds=[1, 2]).failing] == [
        ("the row is missing",)
    ]


def test_the_seeds_that_were_not_run_give_the_standard_deviation(
    entry: Make, snapshot: Snap
) -> None:
    old = snapshot(*(entry(seed=s, scores={"dist-1": v}) for s, v in VARYING.items()))
    cell = only(compare(old, snapshot(entry(seed=1, scores={"dist-1": 0.4})), seeds=[1]))
    assert (cell.unit, cell.deviations) == ("seeds", pytest.approx(3.0))  # from 0.1, by 0.1 each


@pytest.mark.parametrize("share", [-1.001, -0.999, 0.999, 1.001])
def test_elsewhere_seeds_that_were_not_run_add_to_the_standard_deviation(
    entry: Make, snapshot: Snap, share: float
) -> None:
    there = {"circumstances": GPU, "device": GPU["device"], "weights": {}}
    old = snapshot(*(entry(seed=s, scores={"dist-1": v}) for s, v in VARYING.items()))
    value = 0.2 + share * spread(tuple(VARYING.values()), seeds=1, cells=1)
    comparison = compare(old, snapshot(entry(seed=1, scores={"dist-1": value}, **there)), seeds=[1])
    assert comparison.ok == (abs(share) < 1)
    assert "compared by the standard deviation over seeds 1, 2, 3" in comparison.rows[0].notes[0]


def test_another_device_with_one_seed_is_exact_and_names_the_device(
    entry: Make, snapshot: Snap
) -> None:
    there = {"circumstances": GPU, "device": GPU["device"]}
    comparison = compare(snapshot(entry()), snapshot(entry(texts=("a", "b", "c"), **there)))
    assert not comparison.ok
    assert Cause("device", "device", "cpu (x86_64)", "cuda (Fast)") in comparison.causes()


def test_seeds_that_failed_do_not_hide_behind_the_spread(entry: Make, snapshot: Snap) -> None:
    old = [entry(seed=s) for s in (1, 2)]
    new = entry(seed=3, status="failed", responses=None, scores={})
    assert not compare(snapshot(*old), snapshot(new)).ok


def test_a_seed_that_lacks_metrics_hides_none_of_the_others(entry: Make, snapshot: Snap) -> None:
    failed = entry(seed=2, scores={}, status="failed")
    old = snapshot(*(entry(seed=s, scores={"length": v}) for s, v in ((1, 8.0), (4, 8.1))), failed)
    new = snapshot(entry(seed=3, scores={"length": 80.0}))
    comparison = compare(old, new)
    assert [cell.metric for _, cell in comparison.cells()] == ["length"]


def test_nothing_compared_is_not_ok(entry: Make, snapshot: Snap) -> None:
    comparison = compare(
        snapshot(entry(scores={}, status="failed")), snapshot(entry(seed=3, scores={"length": 8.0}))
    )
    assert not comparison.ok


def test_two_settings_of_a_row_are_no_seeds(entry: Make, snapshot: Snap) -> None:
    def both(seed: int, *lengths: float) -> list[Entry]:
        return [
            entry(seed=seed, config={"epochs": epochs}, scores={"length": length})
            for epochs, length in enumerate(lengths, start=1)
        ]

    comparison = compare(snapshot(*both(1, 10.5, 60.5)), snapshot(*both(3, 40.4, 90.5)))
    assert not comparison.ok
    problems = [problem for row in comparison.rows for problem in row.problems]
    assert problems == ["the row is missing"] * 2 + ["the row was added"] * 2
