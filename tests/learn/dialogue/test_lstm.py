"""The LSTM over groups of rows against torch's own over packed rows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from rejoinder.learn.dialogue.networks.lstm import run_lstm

LENGTHS = {
    "many lengths": [3, 50, 1, 7, 7, 12, 30, 2, 1, 49],
    "one length": [4, 4, 4],
    "one row": [6],
    "single tokens": [1, 1],
}


def packed(lengths: list[int], size: int) -> PackedSequence:
    rows = torch.randn(len(lengths), max(lengths), size)
    made = pack_padded_sequence(rows, torch.tensor(lengths), True, enforce_sorted=False)
    return made._replace(data=made.data.clone().requires_grad_())


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_states_and_gradients_are_those_of_packed_rows(
    lengths: list[int], bidirectional: bool
) -> None:
    torch.manual_seed(0)
    lstm = nn.LSTM(5, 4, batch_first=True, bidirectional=bidirectional)
    rows = packed(lengths, 5)
    first = None if bidirectional else (torch.randn(len(lengths), 4), torch.randn(len(lengths), 4))
    start = None if first is None else (first[0][None], first[1][None])

    def gradients(states: Tensor, last: Tensor) -> list[Tensor]:
        loss = (states**2).sum() + last.sum()
        return list(torch.autograd.grad(loss, [rows.data, *lstm.parameters()]))

    theirs, (their_last, _) = lstm(rows, start)
    ours, our_last = run_lstm(lstm, rows, first)
    torch.testing.assert_close(ours.data, theirs.data, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(our_last, their_last, atol=1e-6, rtol=1e-5)
    expected = gradients(theirs.data, their_last)
    for own, other in zip(gradients(ours.data, our_last), expected, strict=True):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-4)
