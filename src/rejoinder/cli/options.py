"""Arguments and options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from rejoinder.errors import UsageError

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns

T = TypeVar("T", int, float)


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of whole numbers; its wide limits would leave no room in the help."""
    return _parser(int, "a whole number", low, high)


def decimal(low: float, high: float) -> Callable[[str], float]:
    """Return a parser of numbers in a range."""
    return _parser(float, "a number", low, high)


def _parser(kind: Callable[[str], T], what: str, low: T, high: T) -> Callable[[str], T]:
    def parse(text: str) -> T:
        try:
            number = kind(text)
        except ValueError:
            raise typer.BadParameter(f"'{text}' is not {what}") from None
        if not low <= number <= high:
            raise typer.BadParameter(f"{number} is not in the range {low}<=x<={high}")
        return number

    return parse


def flag(name: str, help: str, **settings: Any) -> Any:
    """Return an option that is on or off."""
    return typer.Option(name, help=help, show_default=False, **settings)


def count_option(
    name: str, help: str, *, short: str | None = None, min: int = 1, max: int | None = None
) -> Any:
    """Return an option that takes a number of things."""
    names = [name] if short is None else [name, short]
    return typer.Option(*names, metavar="N", min=min, max=max, help=help)


def seed_option(help: str = "Random seed.", high: int = 2**63 - 1) -> Any:
    """Return ``--seed``; some libraries take no large ones."""
    return typer.Option("--seed", metavar="N", parser=whole(0, high), help=help)


def output_file(help: str) -> Any:
    """Return ``--output`` for a file."""
    return typer.Option("--output", "-o", metavar="FILE", help=help)


def output_folder(help: str) -> Any:
    """Return ``--output`` for a folder."""
    return typer.Option("--output", "-o", metavar="FOLDER", help=help)


def complete_metric(incomplete: str) -> list[str]:
    """Complete the name of a metric in the shell."""
    from rejoinder.registry import METRICS

    return [name for name in METRICS.names() if name.startswith(incomplete)]


ITEMS_HELP = "JSONL, CSV, TSV or Parquet; .gz, .zst; - is stdin."

ItemsArgument = Annotated[str, typer.Argument(metavar="ITEMS", help=ITEMS_HELP)]
PairsArgument = Annotated[
    str, typer.Argument(metavar="PAIRS", help="Parquet, as 'corpus' writes it.")
]
ScoresArgument = Annotated[
    str, typer.Argument(metavar="SCORES", help="JSONL, as 'score' writes it.")
]
_METRICS = typer.Option(
    "--metric",
    "-m",
    metavar="SPEC",
    help="A metric, such as 'bleu(n=2)'; repeatable; see 'ls'.",
    autocompletion=complete_metric,
)
MetricsOption = Annotated[list[str], _METRICS]
OptionalMetricsOption = Annotated[list[str] | None, _METRICS]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="FIELD=COLUMN,…", help="Columns of the items: reply=answer,system=bot."
    ),
]
OutputOption = Annotated[Path | None, output_file("Output file; stdout by default.")]
JsonOption = Annotated[bool, flag("--json", "Print JSON instead of tables.")]
SvgOption = Annotated[
    Path | None, typer.Option("--svg", metavar="FILE", help="Also draw the curve to this file.")
]
LanguageOption = Annotated[
    str | None,
    typer.Option("--language", "-l", metavar="xx", help="Language of the texts, such as en or ja."),
]
AnyLanguageOption = Annotated[
    bool,
    flag("--any-language", "Accept texts in languages that a model doesn't know, with a warning."),
]
PluginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin", metavar="FILE", help="Python file with your own metrics; it will be executed."
    ),
]
SeedOption = Annotated[int, seed_option("Random seed of the resampling.")]
ResamplesOption = Annotated[
    int,
    typer.Option(
        "--resamples",
        metavar="N",
        parser=whole(100, 1_000_000),
        help="Number of bootstrap resamples.",
    ),
]
EvaluatorOption = Annotated[
    str | None,
    typer.Option("--evaluator", metavar="DIR", help="Evaluator: a folder that 'fit' made."),
]
StrictOption = Annotated[
    bool, flag("--strict", "Refuse contexts that are in the evaluator's training data.")
]
RatingScaleOption = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="LOW:HIGH",
        help="Lowest and highest possible rating; by default those that occur.",
    ),
]
LearnFromOption = Annotated[
    str | None,
    typer.Option(
        "--learn-from",
        metavar="ROLE",
        help="Whose turns are replies to learn from: user, assistant or all.",
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", metavar="FILE", help="Leave out utterances of this test set; repeatable."
    ),
]
ByOption = Annotated[
    str | None, typer.Option("--by", metavar="SPEC", help="Retriever: vectors, bm25 …; see 'ls'.")
]
SplitOption = Annotated[
    str | None, typer.Option("--split", metavar="NAME", help="Use pairs of this split only.")
]
KeepLeaksOption = Annotated[
    bool, flag("--keep-leaks", "Also use pairs whose utterance is in the test set.")
]
DropAnnotatorOption = Annotated[
    list[str] | None,
    typer.Option("--drop-annotator", metavar="NAME", help="Drop this annotator; repeatable."),
]
DropUnreliableOption = Annotated[
    bool, flag("--drop-unreliable", "Drop the annotators that are listed as unreliable.")
]
MinKappaOption = Annotated[
    float,
    typer.Option("--min-kappa", metavar="K", help="Annotators with a lower kappa are unreliable."),
]
MaxDistractorOption = Annotated[
    float,
    typer.Option(
        "--max-distractor",
        metavar="S",
        help="Annotators who prefer distractors more often are unreliable.",
    ),
]
DistractorOption = Annotated[
    str,
    typer.Option(
        "--distractor", metavar="NAME", help="System of the planted bad replies, or none."
    ),
]
CandidatesArgument = Annotated[
    str, typer.Argument(metavar="CANDIDATES", help="Items; replies to one context are compared.")
]
AnswersArgument = Annotated[
    list[str], typer.Argument(metavar="ANSWERS", help="JSONL: a, b, winner, annotator.")
]
StrictAnswersOption = Annotated[
    bool, flag("--strict", "Refuse answers that contradict the annotator's others.")
]


def parse_columns(text: str | None) -> Columns | None:
    """Parse ``reply=answer,system=bot``.

    >>> parse_columns("reply=answer, system=bot")
    {'reply': 'answer', 'system': 'bot'}
    """
    if text is None:
        return None
    columns: dict[str, str] = {}
    for part in text.split(","):
        key, equals, name = (each.strip() for each in part.partition("="))
        if not (key and equals and name):
            raise UsageError(f"--columns {part.strip()}: expected FIELD=COLUMN")
        if key in columns:
            raise UsageError(f"--columns {key}: given twice")
        columns[key] = name
    return columns


def parse_scale(text: str | None, problems: list[str]) -> tuple[float, float] | None:
    """Parse ``LOW:HIGH``; a wrong one becomes a problem."""
    if text is None:
        return None
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        problems.append(f"--scale {text}: expected LOW:HIGH, as in 1:5")
        return None


def load_plugins(files: list[str] | None) -> None:
    """Execute Python files and register the metrics that they define."""
    for path in files or []:
        from rejoinder.verbs.plugin import load_plugin

        load_plugin(path)


def svg_problems(svg: Path | None) -> list[str]:
    """Return a message if the picture would go to stdout, like the table."""
    return ["--svg - would mix the picture with the table: name a file"] if str(svg) == "-" else []


def stdout_problems(json: bool, output: Path | None, what: str) -> list[str]:
    """Return a message if both JSON and ``what`` would go to stdout."""
    if json and (output is None or str(output) == "-"):
        return [f"--json prints a summary to stdout, where the {what} go: add -o FILE"]
    return []
