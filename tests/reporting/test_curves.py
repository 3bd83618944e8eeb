"""Learning curves: losses and divergences, epoch by epoch."""

from __future__ import annotations

import math

import pytest

from dialbench.reporting.plots.curves import training_curves


def test_one_panel_a_system_with_both_losses_and_the_best_epoch(result):
    curve = [
        {"epoch": 1.0, "train_loss": 5.0, "valid_loss": 4.0, "train_kl": 0.1},
        {"epoch": 2.0, "train_loss": 4.0, "valid_loss": 3.0},
        {"epoch": 3.0, "train_loss": 3.0, "valid_loss": 3.5},
    ]
    other = [{"epoch": 1.0, "train_loss": 6.0, "valid_loss": math.nan}]
    figures = training_curves([result("a", curve=curve), result("b", curve=other)])
    assert list(figures) == ["demo-training"]
    first, second = figures["demo-training"].axes
    assert (first.get_title("left"), second.get_title("left")) == ("a", "b")
    grey, train, valid, best = (line.get_xydata().tolist() for line in first.lines)
    assert grey == []
    assert train == [[1, 5], [2, 4], [3, 3]]
    assert valid == [[1, 4], [2, 3], [3, 3.5]]
    assert best == [[2, 3]]
    assert len(second.lines) == 3


def test_a_system_that_trains_far_longer_stretches_no_axis_but_its_own(result):
    def curve(epochs):
        return [{"epoch": float(e), "train_loss": 5.0, "valid_loss": 4.0} for e in range(1, epochs)]

    lengths = {"a": 5, "b": 7, "c": 6, "LAED": 41}
    results = [result(name, curve=curve(epochs)) for name, epochs in lengths.items()]
    *others, last = training_curves(results)["demo-training"].axes
    assert {panel.get_xlim() for panel in others} == {(0.7, 6.3)}
    assert last.get_xlim() == (-1.0, 42.0)
    assert [text.get_text() for text in last.texts] == ["to epoch 40"]
    assert not any(panel.texts for panel in others)


def test_the_point_is_the_epoch_that_the_system_kept(result):
    curve = [{"epoch": 1.0, "valid_loss": 3.0}, {"epoch": 2.0, "valid_loss": 4.0}]
    (figure,) = training_curves([result("a", curve=curve, facts={"best_epoch": 2})]).values()
    assert figure.axes[0].lines[-1].get_xydata().tolist() == [[2, 4]]


def test_a_measurement_behind_training_is_no_epoch_of_it(result):
    curve = [
        {"epoch": 1.0, "train_loss": 5.0, "valid_loss": 3.0},
        {"epoch": 2.0, "train_loss": 4.0, "valid_loss": 3.5},
        {"epoch": 3.0, "valid_loss": 3.0},
    ]
    other = [{"epoch": 1.0, "train_words": 2.0, "valid_words": 2.5}, curve[2]]
    results = [
        result("a", curve=curve, facts={"best_epoch": 3}),
        result("b", curve=other, facts={"best_epoch": 3}),
    ]
    first, second = training_curves(results)["demo-training"].axes
    _, _, valid, best = (line.get_xydata().tolist() for line in first.lines)
    assert valid == [[1, 3], [2, 3.5]]
    assert best == [[1, 3]]
    assert [text.get_text() for text in second.texts] == ["trained by other losses"]
    assert len(second.lines) == 3


def test_a_loss_far_above_the_others_leaves_the_panel(result):
    def limits_for(first):
        curve = [
            {"epoch": 1.0, "train_loss": first, "valid_loss": 5.0},
            {"epoch": 2.0, "train_loss": 4.5, "valid_loss": 4.6},
        ]
        (figure,) = training_curves([result("a", curve=curve)]).values()
        return figure.axes[0].get_ylim()

    low, high = limits_for(25.0)
    assert 4.4 < low < 4.5
    assert 5.0 < high < 5.1
    assert limits_for(6.0)[1] > 6.0
    assert limits_for(7.5)[1] < 5.1


def test_a_training_is_drawn_once_however_it_answers(result):
    curve = [{"epoch": 1.0, "train_loss": 5.0, "valid_loss": 4.0}]
    results = [
        result("a", curve=curve, decoding=d, seed=s) for d in ("greedy", "beam:5") for s in (1, 2)
    ]
    (figure,) = training_curves([*results, result("untrained")]).values()
    (axes,) = figure.axes
    assert axes.get_title("left") == "a"
    assert len(axes.lines) == 2 * 3


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_all_of_the_legend_is_on_the_page(result, count):
    curve = [{"epoch": 1.0, "train_loss": 5.0, "valid_loss": 4.0}]
    results = [result(f"system {i}", curve=curve) for i in range(count)]
    (figure,) = training_curves(results).values()
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1


def test_no_curves_no_figure(result):
    assert training_curves([result("a")]) == {}


def latent(**parts):
    return [
        {"epoch": epoch, "train_loss": 5.0 - epoch, "valid_loss": loss}
        | {f"{split}_{key}": value * epoch for key, value in parts.items() for split in SPLITS}
        for epoch, loss in ((1.0, 4.0), (2.0, 3.0), (3.0, 3.5))
    ]


SPLITS = ("train", "valid")


def test_divergences_have_a_figure_of_their_own_with_the_epoch_that_answers(result):
    plain = [{"epoch": 1.0, "train_loss": 5.0, "valid_loss": 4.0}]
    both = {"kl_conversation_per_example": 0.01, "kl_sentence_per_example": 2.0}
    figures = training_curves(
        [
            result("plain", curve=plain),
            result("one", curve=latent(kl_per_example=0.5, bow_per_example=9.0)),
            result("two", curve=latent(**both)),
        ]
    )
    assert list(figures) == ["demo-training", "demo-training-kl"]
    one, two = figures["demo-training-kl"].axes
    assert (one.get_title("left"), two.get_title("left")) == ("one", "two")
    assert one.get_yscale() == two.get_yscale() == "log"
    *grey, train, valid, best = (line.get_xydata().tolist() for line in one.lines)
    ((joined,),) = (grey,)
    assert [point for point in joined if not math.isnan(point[0])] == [
        *([epoch, 0.01 * epoch] for epoch in (1, 2, 3)),
        *([epoch, 2.0 * epoch] for epoch in (1, 2, 3)),
    ]
    assert train == valid == [[1, 0.5], [2, 1.0], [3, 1.5]]
    assert best == [[2, 1.0]]
    assert [text.get_text() for text in one.texts] == []
    assert [text.get_text() for text in two.texts] == ["conversation", "sentence"]
    dashes = [line.get_linestyle() for line in two.lines if line.get_linewidth() == 1.5]
    assert len(set(dashes)) == len(dashes) - 1


def test_names_of_divergences_stand_on_the_far_sides(result):
    parts = {"kl_conversation_per_example": 1.0, "kl_sentence_per_example": 2.0}
    figure = training_curves([result("a", curve=latent(**parts))])["demo-training-kl"]
    figure.canvas.draw()
    low, high = (text.get_window_extent() for text in figure.axes[0].texts)
    (_, lower), (_, higher) = (text.xy for text in figure.axes[0].texts)
    to_page = figure.axes[0].transData.transform
    assert low.y1 < to_page((3, lower))[1] < to_page((3, higher))[1] < high.y0
