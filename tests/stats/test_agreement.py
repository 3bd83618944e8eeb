"""Agreement against statsmodels, scikit-learn and printed examples, and its coverage."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from dialbench.stats.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha

rng = np.random.default_rng
NO = np.nan
# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability": four observers, 12 units.
PRINTED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NO, NO, NO],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NO, 3],
        [NO, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NO],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NO],
    ]
).T
ALL = [fleiss_kappa, cohen_kappa, krippendorff_alpha]


def judged(generator, items, raters, kinds=3, alike=0.6):
    """Ratings that are the item's own category with chance `alike`, else drawn anew."""
    own = generator.integers(kinds, size=(items, 1))
    other = generator.integers(kinds, size=(items, raters))
    return np.where(generator.random((items, raters)) < alike, own, other)


@pytest.mark.parametrize(("items", "raters"), [(10, 3), (50, 5), (7, 2)])
def test_fleiss_is_that_of_statsmodels(items, raters):
    from statsmodels.stats.inter_rater import aggregate_raters
    from statsmodels.stats.inter_rater import fleiss_kappa as peer

    ratings = judged(rng(items), items, raters)
    expected = peer(aggregate_raters(ratings)[0], method="fleiss")
    assert fleiss_kappa(ratings).value == pytest.approx(expected, rel=1e-12)
    assert fleiss_kappa(np.array(["no", "so", "yes"])[ratings]).value == pytest.approx(expected)


def test_cohen_is_that_of_scikit_learn_and_statsmodels():
    from sklearn.metrics import cohen_kappa_score, confusion_matrix
    from statsmodels.stats.inter_rater import cohens_kappa

    ratings = judged(rng(1), 40, 2)
    actual = cohen_kappa(ratings).value
    assert actual == pytest.approx(cohen_kappa_score(*ratings.T), rel=1e-12)
    assert actual == pytest.approx(cohens_kappa(confusion_matrix(*ratings.T)).kappa, rel=1e-12)
    three = judged(rng(2), 40, 3)
    pairs = [cohen_kappa_score(three[:, i], three[:, j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert cohen_kappa(three).value == pytest.approx(np.mean(pairs), rel=1e-12)


def test_cohen_by_hand():
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: agreement 0.7, by chance 0.5*0.6 + 0.5*0.4.
    ratings = [["y", "y"]] * 20 + [["y", "n"]] * 5 + [["n", "y"]] * 10 + [["n", "n"]] * 15
    actual = cohen_kappa(ratings)
    assert actual.value == pytest.approx(0.4)
    assert actual.observed == pytest.approx(0.7)
    assert actual.items == 50


def test_krippendorff_printed_example():
    nominal, ordinal = krippendorff_alpha(PRINTED), krippendorff_alpha(PRINTED, "ordinal")
    assert nominal.value == pytest.approx(0.743, abs=5e-4)
    assert ordinal.value == pytest.approx(0.815, abs=5e-4)
    assert nominal.items == ordinal.items == 11  # one unit has a single judgement


def by_counting(ratings, level):
    """Krippendorff's alpha as its definition reads, judgement by judgement."""
    units = [[v for v in row if v == v] for row in ratings]
    units = [unit for unit in units if len(unit) > 1]
    judgements = [v for unit in units for v in unit]
    names = sorted(set(judgements))
    n = {name: judgements.count(name) for name in names}

    def apart(c, k):
        if level == "nominal":
            return float(c != k)
        low, high = min(c, k), max(c, k)
        return (sum(n[g] for g in names if low <= g <= high) - (n[c] + n[k]) / 2) ** 2

    within = sum(
        sum(apart(c, k) for c, k in permutations(unit, 2)) / (len(unit) - 1) for unit in units
    )
    between = sum(apart(c, k) for c, k in permutations(judgements, 2))
    return 1 - (len(judgements) - 1) * within / between


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
@pytest.mark.parametrize("seed", range(4))
def test_krippendorff_by_counting_with_missing_judgements(seed, level):
    ratings = judged(rng(seed), 20, 4, kinds=4).astype(float)
    ratings[rng(seed + 10).random(ratings.shape) < 0.3] = np.nan
    actual = krippendorff_alpha(ratings, level)
    assert actual.value == pytest.approx(by_counting(ratings, level), rel=1e-10)


def test_observed_counts_every_pair_of_judgements_once():
    assert krippendorff_alpha([[1, 1, 1], [1, 2, None]]).observed == 3 / 4
    ratings = judged(rng(5), 30, 5).astype(float)
    ratings[rng(6).random(ratings.shape) < 0.4] = np.nan
    pairs = [pair for row in ratings for pair in combinations(row[~np.isnan(row)], 2)]
    expected = np.mean([one == other for one, other in pairs])
    assert krippendorff_alpha(ratings).observed == pytest.approx(expected)


def test_text_has_no_order():
    with pytest.raises(ValueError, match="categories with an order must be numbers"):
        krippendorff_alpha([["9", "10"], ["10", "9"]], "ordinal")
    assert krippendorff_alpha([["9", "10"], ["10", "10"]]).items == 2


def test_ordinal_forgives_neighbours():
    near = [[1, 2], [2, 3], [3, 2], [1, 1], [3, 3], [2, 1]]
    far = [[1, 3], [2, 2], [3, 1], [1, 1], [3, 3], [2, 2]]
    assert krippendorff_alpha(near, "ordinal").value > krippendorff_alpha(near).value
    assert krippendorff_alpha(far, "ordinal").value < krippendorff_alpha(far).value


@pytest.mark.parametrize("coefficient", ALL)
def test_its_ends(coefficient):
    alike = [[1, 1], [2, 2], [1, 1]]
    assert (coefficient(alike).value, coefficient(alike).observed) == (1.0, 1.0)
    all_equal = coefficient([[1, 1]] * 5)
    assert np.isnan(all_equal.value)
    assert (all_equal.interval, all_equal.observed) == (None, 1.0)
    assert coefficient([[1, 2], [2, 1]]).value < 0


def test_cohen_leaves_out_raters_who_both_said_one_thing_throughout():
    actual = cohen_kappa([[1, 1, 1], [1, 1, 2], [1, 1, 1]])
    # The third agrees with each of the others on two of three items, as chance would.
    assert actual.value == pytest.approx(0.0)
    assert actual.observed == pytest.approx(7 / 9)
    third = np.array([1, 2, 2, 1, 1, 2, 1, 1])
    fourth = np.array([1, 2, 1, 1, 1, 2, 2, 1])
    same = np.ones(8, dtype=int)
    pairs = [np.stack(pair, axis=1) for pair in ((same, third), (same, fourth), (third, fourth))]
    expected = [cohen_kappa(pair).value for pair in pairs]
    assert expected[:2] == pytest.approx([0, 0])
    actual = cohen_kappa(np.stack([same, same, third, fourth], axis=1))
    # One pair has no kappa; the first two above occur twice.
    assert actual.value == pytest.approx(np.average(expected, weights=[2, 2, 1]))
    assert actual.interval[0] < actual.value < actual.interval[1]
    assert cohen_kappa([[1, 2]] * 4).value == 0.0


@pytest.mark.parametrize("coefficient", ALL)
@pytest.mark.parametrize("raters", [2, 3])
def test_perfect_agreement_has_an_interval_without_width(coefficient, raters):
    actual = coefficient([[1] * raters, [2] * raters] * 2)
    assert (actual.value, actual.interval) == (1.0, (1.0, 1.0))


@pytest.mark.parametrize("coefficient", ALL)
@pytest.mark.parametrize("ratings", [[[1, 1], [2, 2]], [[1, 1]] * 9 + [[2, 2]]])
def test_there_is_no_interval_where_one_item_carries_all(coefficient, ratings):
    # Without the last item all judgements are equal, so there is no coefficient to leave it out of.
    actual = coefficient(ratings)
    assert (actual.value, actual.interval) == (1.0, None)


@pytest.mark.parametrize("coefficient", [fleiss_kappa, cohen_kappa])
@pytest.mark.parametrize("missing", [np.nan, None])
def test_a_missing_judgement_is_refused_where_it_cannot_be(coefficient, missing):
    with pytest.raises(ValueError, match="needs a judgement of every rater on every item"):
        coefficient([["a", "b"], ["a", missing]])


@pytest.mark.parametrize("coefficient", ALL)
@pytest.mark.parametrize("ratings", [[], [[1], [2]], [1, 2, 3]])
def test_what_cannot_agree_is_refused(coefficient, ratings):
    with pytest.raises(ValueError, match="at least one item and two raters"):
        coefficient(ratings)


def test_items_with_one_judgement_do_not_count():
    with pytest.raises(ValueError, match="no item has two judgements"):
        krippendorff_alpha([[1, None], [None, 2]])


@pytest.mark.parametrize("coefficient", ALL)
def test_coverage(coefficient):
    generator = rng(3)
    # Two judgements agree if both are the item's own (0.6 * 0.6), else by chance.
    true, held, trials = 0.36, 0, 500
    for _ in range(trials):
        low, high = coefficient(judged(generator, 80, 3)).interval
        held += low <= true <= high
    assert 0.93 <= held / trials <= 0.97


@pytest.mark.parametrize("coefficient", ALL)
def test_an_interval_stays_between_its_ends(coefficient):
    # The t-interval of nine agreements of ten ends above 1.
    assert coefficient([[1, 1], [2, 2]] * 4 + [[1, 1], [1, 2]]).interval[1] == 1.0
