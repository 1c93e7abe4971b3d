"""LSTM layers over texts of different lengths: on a processor in groups of similar length.

torch has a fast LSTM for rows of equal length, and for packed rows a loop over tokens, whose
backward pass is several times slower. Rows of similar length are therefore read together by the
fast one, with some padding at their ends, which no state before it depends on; a backward direction
reads each row reversed. The result is that of the packed rows, up to rounding. On a GPU, packed
rows are fast.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

SIMILAR = 0.6
"""Rows of a group are at least this share of its longest row."""

FirstState = tuple[Tensor, Tensor]
"""Hidden and cell state of each row [n, hidden_size]."""


def run_lstm(
    lstm: nn.LSTM, rows: PackedSequence, first: FirstState | None = None
) -> tuple[PackedSequence, Tensor]:
    """Return the states of all tokens, packed, and the last states of each direction
    [directions, n, hidden_size]. The LSTM has one layer; ``first`` is for one direction."""
    if rows.data.device.type != "cpu":
        start = None if first is None else (first[0].unsqueeze(0), first[1].unsqueeze(0))
        states, (last, _) = lstm(rows, start)
        return cast(PackedSequence, states), cast(Tensor, last)
    count = int(rows.batch_sizes[0])
    lengths = (rows.batch_sizes[:, None] > torch.arange(count)).sum(0)
    if first is None:
        zeros = rows.data.new_zeros(count, lstm.hidden_size)
        first = zeros, zeros
    elif rows.sorted_indices is not None:
        first = first[0][rows.sorted_indices], first[1][rows.sorted_indices]
    places = [_places(rows.batch_sizes, lengths, a, b) for a, b in _groups(lengths.tolist())]
    states, last = zip(
        *(
            _run(lstm, suffix, rows.data, first, places, lengths)
            for suffix in ("", "_reverse")[: 1 + lstm.bidirectional]
        ),
        strict=True,
    )
    order = torch.cat([own[real] for _, _, own, real in places]).argsort()
    ends = torch.stack(last)
    if rows.unsorted_indices is not None:
        ends = ends[:, rows.unsorted_indices]
    return rows._replace(data=torch.cat(states, dim=-1)[order]), ends


def run_one_token(lstm: nn.LSTM, inputs: Tensor, state: FirstState) -> FirstState:
    """Return the state after one more token [n, size] of each row, without the preparation for
    many tokens that the layer makes at each call."""
    hidden, cell = torch.lstm_cell(inputs, list(state), *_weights(lstm))
    return hidden, cell


def _groups(lengths: list[int]) -> list[tuple[int, int]]:
    """Divide rows, the longest first, into groups of similar length."""
    starts = [0]
    for row, length in enumerate(lengths):
        if length < SIMILAR * lengths[starts[-1]]:
            starts.append(row)
    return list(zip(starts, [*starts[1:], len(lengths)], strict=True))


Places = tuple[int, int, Tensor, Tensor]
"""First and last row of a group, the place in the packed data of each token [rows, longest], and
which of them are tokens."""


def _places(batch_sizes: Tensor, lengths: Tensor, start: int, end: int) -> Places:
    longest = int(lengths[start])
    before = batch_sizes.cumsum(0) - batch_sizes
    places = before[:longest] + torch.arange(start, end)[:, None]
    return start, end, places, torch.arange(longest) < lengths[start:end, None]


def _run(
    lstm: nn.LSTM,
    suffix: str,
    data: Tensor,
    first: FirstState,
    places: list[Places],
    lengths: Tensor,
) -> tuple[Tensor, Tensor]:
    """Run one direction: the states of all tokens, group after group, and the last states [n]."""
    weights = _weights(lstm, suffix)
    states, last = [], []
    for start, end, own, real in places:
        rows = torch.arange(end - start)
        ends = lengths[start:end] - 1
        if suffix:
            turned = (ends[:, None] - torch.arange(own.shape[1])).clamp(min=0)
            read = own.gather(1, turned)
        else:
            read = own
        inputs = data[torch.where(real, read, 0)]
        begin = [part[None, start:end].contiguous() for part in first]
        made: Tensor = torch.lstm(inputs, begin, weights, True, 1, 0.0, False, False, True)[0]
        last.append(made[rows, ends])
        if suffix:
            made = made[rows[:, None], turned]
        states.append(made[real])
    return torch.cat(states), torch.cat(last)


def _weights(lstm: nn.LSTM, suffix: str = "") -> list[Tensor]:
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [getattr(lstm, f"{name}_l0{suffix}") for name in names]
