"""What models share: the output layer."""

from __future__ import annotations

import torch

from dialbench.neural.model import WordOutput


class TestWordOutput:
    """bfloat16 keeps eight bits of a number: near logits tie, and the first word wins."""

    def near(self) -> WordOutput:
        output = WordOutput(1, 4)
        with torch.no_grad():
            output.weight.copy_(torch.tensor([[5.0], [8.0], [8.001], [1.0]]))
        return output

    def test_answers_know_words_that_bfloat16_does_not_tell_apart(self) -> None:
        output, hidden = self.near().eval(), torch.ones(3, 1, dtype=torch.bfloat16)
        with torch.autocast("cpu", torch.bfloat16):
            logits = output(hidden)
        assert logits.dtype == torch.float32
        assert logits.argmax(-1).tolist() == [2, 2, 2]

    def test_training_keeps_its_precision(self) -> None:
        with torch.autocast("cpu", torch.bfloat16):
            assert self.near().train()(torch.ones(3, 1)).dtype == torch.bfloat16

    def test_float64_stays(self) -> None:
        output = self.near().double().eval()
        assert output(torch.ones(2, 1, dtype=torch.float64)).dtype == torch.float64
