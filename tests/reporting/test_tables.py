"""Tables: what a narrow window does to long names and large numbers."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from rejoinder.reporting.recipe_tables import collected_tables
from rejoinder.reporting.tables import number, plain_table


def printed(table: Any, width: int = 80) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, markup=False, highlight=False).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert max(map(cell_len, lines)) <= width
    return lines


def test_a_label_without_room_is_printed_above_its_numbers() -> None:
    label = "retrieved by BM25, rated by the unreferenced scorer"
    result = {
        "row": label,
        "metric": "vbleu(n=2)",
        "spearman": -0.123,
        "spearman_ci": [-0.2, 0.1],
        "pearson": 0.2,
        "pearson_ci": [-0.1, 0.22],
        "n": 1234,
        "unscored": 3,
    }
    # 18 + 17 + 5 + 8 for the numbers, 2 between each two columns and at the edges: 21 are left,
    # where the label would take three lines
    (table,) = collected_tables("Agreement", [result, {**result, "row": "short"}])
    lines = printed(table)
    where = lines.index(f" {label}")
    values = ["-.123", "[-.20,", ".10]", ".200", "[-.10,", ".22]", "1,234", "3"]
    assert lines[where + 1].split() == values
    assert lines[where + 2] == " short"
    assert lines[where + 3] == lines[where + 1]
    assert lines[where - 2].split()[-2:] == ["n", "unscored"]

    # where the labels fit they stand at the left, as ever
    (table,) = collected_tables("Agreement", [{**result, "row": "short"}])
    assert any(line.startswith(" short") and "1,234" in line for line in printed(table))


@pytest.mark.parametrize("label", ["x" * 200, "\u65e5\u672c\u8a9e " * 40, "a [b] \x1b[31m c", ""])
def test_any_label_fits_any_window(label: str) -> None:
    table = plain_table("", "a", "b", right=[1, 2])
    table.add_row(label, "1" * 20, "2" * 20)
    for width in (46, 50, 60, 80):
        assert any("1" * 20 in line for line in printed(table, width))


def test_numbers_of_any_size_stay_short() -> None:
    assert number(-0.1263) == "-.1263"
    assert number(12.3) == "12.3000"
    assert number(9_999_999.0) == "9999999.0000"
    assert number(1.5e8) == "1.5e+08"
    assert number(-1e300) == "-1e+300"
