"""Figures quoted on several pages agree with measured.json and with the studies."""

from __future__ import annotations

import importlib.util
import json
import re
from types import ModuleType

import pytest

import rejoinder
from docs.blocks import DOCS, ROOT
from rejoinder.meta_evaluation.correlate import correlate
from rejoinder.metrics.metric import make_metric
from rejoinder.registry import METRICS
from rejoinder.spec import parameters, parse
from rejoinder.testsets import load

HOOKS = DOCS / "hooks"
NUMBER = re.compile(r"(?<![\d.])-?\.\d{2,4}(?!\d)")


def hook(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HOOKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, str], dict[str, object]]:
    record = json.loads((HOOKS / "measured.json").read_text())
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"\n## {record['version']}\n" in changelog
    return {(row["set"], row["metric"]): row for row in record["results"]}


def test_every_metric_without_an_evaluator_was_measured(measured: dict[object, object]) -> None:
    measure = hook("measure")
    plain, weighted = measure.specs()
    asked = {(name, spec) for name in measure.RATED for spec in plain}
    asked |= {(name, spec) for name in measure.SCORED for spec in weighted}
    assert set(measured) == asked
    assert {"bleu", "sentence-cosine", "am"} <= set(plain)
    assert {"delta-bleu", "ws", "svr", "am"} == set(weighted)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("spec", ["bleu(n=2)", "rouge-l"])
def test_measured_figures_are_reproduced(
    measured: dict[tuple[str, str], dict[str, object]], spec: str
) -> None:
    """Two fast metrics; docs/hooks/measure.py measures all."""
    items = list(load("dailydialog-multiref", "single"))
    values = rejoinder.score(items, [spec])[spec].values
    found = correlate(values, [item.rating() for item in items], resamples=0)
    row = measured["DailyDialog, one reference", spec]
    assert found.spearman.value == pytest.approx(row["spearman"], abs=5e-5)
    assert found.pearson.value == pytest.approx(row["pearson"], abs=5e-5)


def test_pages_of_evaluator_metrics_quote_the_study() -> None:
    pages = hook("metric_pages")
    study = (DOCS / "evaluator-study.md").read_text("utf-8").splitlines()
    head, rows = pages.study_table()
    assert len(rows) >= 10
    asking = [name for name in METRICS.builtin if "evaluator" in parameters(METRICS.find(name))]
    for name in asking:
        own = [row for spec, row in rows if spec.name == name]
        text = pages.measured(name)
        assert all(row in text.splitlines() for row in own)
        assert (head in text) == bool(own)
    quoted = {parse(re.findall(r"`([^`]+)`", row)[0]).name for _, row in rows}
    assert {"unreferenced", "rejoinder", "vcosine"} <= quoted
    assert all(row in study for _, row in rows)
    for spec, _ in rows:
        assert make_metric(spec).name == spec.name


def test_table_7_of_gupta_et_al() -> None:
    """Gupta et al. 2019: BLEU-2 to the last printed digit, .0275 and .3257."""
    reply = "sure , i 'll grab it and be right with you ."
    one = ["ok , how was everything ?"]
    four = [
        "i 'll get it right away .",
        "here is the check .",
        "no problem , let me get your server .",
        "i 'll be right back with it .",
    ]
    table = section("### An example (Table 7)")
    for label, spec in (
        ("BLEU-2", "bleu(n=2,tok=whitespace,refs=max)"),
        ("METEOR", "meteor(tok=whitespace)"),
        ("vector extrema", "vector-extrema(tok=whitespace)"),
    ):
        (row,) = (line for line in table.splitlines() if line.startswith(f"| {label} "))
        _, _, ours_one, _, ours_four = (NUMBER.search(c) for c in row.split("|")[1:-1])
        for shown, references in ((ours_one, one), (ours_four, four)):
            assert shown is not None
            assert rejoinder.score_one(spec, reply, references) == pytest.approx(
                float(shown[0]), abs=5e-5
            )


def section(title: str) -> str:
    text = (DOCS / "papers.md").read_text("utf-8")
    return re.split(r"^#+ ", text.partition(f"{title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def ours(text: str) -> list[tuple[str, str]]:
    """What stands in columns of ours, with its row."""
    found = []
    columns: list[bool] | None = None
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if columns is None:
            columns = ["ours" in cell for cell in cells]
            continue
        for own, cell in zip(columns, cells, strict=True):
            found += [(number, line) for number in NUMBER.findall(cell) if own]
    return found


def test_our_figures_on_the_papers_page_are_in_a_study() -> None:
    """If a study is repeated, the pages that quote it must be updated."""
    text = (DOCS / "papers.md").read_text("utf-8").replace(section("### An example (Table 7)"), "")
    others = [page for page in DOCS.glob("*.md") if page.name not in ("papers.md", "choosing.md")]
    known = {float(n) for page in others for n in NUMBER.findall(page.read_text("utf-8"))}
    rounded = known | {round(number, 3) for number in known}
    found = ours(text)
    assert len(found) > 60
    for number, row in found:
        assert float(number) in rounded, f"{number} is in no study: {row}"


def test_choosing_page_rounds_measured_figures(
    measured: dict[tuple[str, str], dict[str, object]],
) -> None:
    guide = (DOCS / "choosing.md").read_text("utf-8")
    sets = ("DailyDialog, one reference", "DailyDialog, four references")
    for spec, label in (
        ("sentence-cosine", "references, no logs"),
        ("bertscore(part=p)", "references, no logs"),
        ("chrf", "references, no encoder"),
        ("vector-extrema", "references, no encoder"),
    ):
        (row,) = (line for line in guide.splitlines() if line.startswith(f"| {label}"))
        pair = [f"{measured[name, spec]['spearman']:.2f}".removeprefix("0") for name in sets]
        assert ", ".join(pair) in row, (spec, pair)
    (row,) = (x for x in guide.splitlines() if x.startswith("| logs of the domain, and references"))
    _, rows = hook("metric_pages").study_table()
    (blend,) = (line for spec, line in rows if str(spec) == "rejoinder")
    first, second = (float(NUMBER.findall(cell)[0]) for cell in blend.split("|")[2:4])
    assert f"{first:.2f}, {second:.2f}".replace("0.", ".") in row
