"""``rejoinder annotate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    ColumnsOption,
    DropAnnotatorOption,
    DropUnreliableOption,
    JsonOption,
    OutputOption,
    count_option,
    flag,
    parse_columns,
    seed_option,
    stdout_problems,
)
from rejoinder.cli.terminal import print_json, say, show
from rejoinder.machine import use_one_thread
from rejoinder.verbs.arguments import SEED

app = typer.Typer(
    help="Ask people: rate, write or compare replies in a browser.",
    no_args_is_help=True,
)

StudyArgument = Annotated[str, typer.Argument(metavar="DIR", help="Folder of the study.")]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        envvar="REJOINDER_DATABASE",
        show_envvar=False,
        help="postgresql://USER:PASSWORD@HOST/NAME; SQLite in DIR by default.",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="URL", help="Public address of the study, for links to people."
    ),
]


@app.command("init")
def init(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of the new study.")],
    template: Annotated[
        str, typer.Option("--template", "-t", metavar="NAME", help="See 'annotate templates'.")
    ],
    items: Annotated[
        str, typer.Option("--items", metavar="ITEMS", help="JSONL, CSV, TSV or Parquet.")
    ],
    language: Annotated[
        str,
        typer.Option("--language", "-l", metavar="xx", help="Language of the pages: en, ja or zh."),
    ] = "en",
    text_language: Annotated[
        str | None,
        typer.Option(
            "--text-language",
            metavar="xx",
            help="Language of the dialogues; by default that of the pages.",
        ),
    ] = None,
    consent: Annotated[bool, flag("--consent", "Add a text that people must agree to.")] = False,
    training: Annotated[bool, flag("--training", "Add a training round with feedback.")] = False,
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a setting; repeatable."),
    ] = None,
    columns: ColumnsOption = None,
    json: JsonOption = False,
) -> None:
    """Make a study from a template, ready to be served.

    Settings, instructions and items are files in DIR: read and change them before the first
    answer.
    """
    from rejoinder.verbs import annotate

    result = annotate.init(
        folder,
        template=template,
        items=items,
        language=language,
        text_language=text_language,
        consent=consent,
        training=training,
        overrides=annotate.parse_overrides(set or ()),
        columns=parse_columns(columns),
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    tasks = f"{result.tasks:,} tasks" if result.tasks else "pairs planned from the answers"
    say(
        f"{folder}: study of kind '{result.kind}', {result.items:,} items, {tasks},"
        f" {result.answers_per_task} answers per task"
    )
    if result.to_fill_in:
        say(f"Fill in the {result.to_fill_in} places marked [[ ]] in {folder}/consent.md")
    say(f"Next: look at {folder}/study.toml and the instructions, then start it:")
    say(f"  rejoinder annotate serve {folder}")


@app.command("templates")
def templates(
    language: Annotated[
        str, typer.Option("--language", "-l", metavar="xx", help="en, ja or zh.")
    ] = "en",
    json: JsonOption = False,
) -> None:
    """List the templates of studies."""
    from rejoinder.verbs import annotate

    result = annotate.templates(language)
    if json:
        print_json(result)
        return
    from rejoinder.reporting.tables import plain_table

    table = plain_table("template", "kind", "study")
    for each in result.templates:
        table.add_row(each["name"], each["kind"], each["summary"])
    show(table)


@app.command("serve")
def serve(
    folder: StudyArgument,
    port: Annotated[
        int,
        typer.Option("--port", "-p", metavar="N", min=0, max=65535, help="0: any free port."),
    ] = 8600,
    host: Annotated[
        str, typer.Option("--host", metavar="NAME", help="0.0.0.0 serves other machines, too.")
    ] = "127.0.0.1",
    database: DatabaseOption = None,
    address: AddressOption = None,
    proxy: Annotated[
        bool, flag("--proxy", "Trust the addresses that a reverse proxy forwards.")
    ] = False,
) -> None:
    """Serve the pages of a study until Ctrl+C. Everything that was answered is stored."""
    use_one_thread()
    from rejoinder.verbs import annotate

    def ready(base: str, researcher: str) -> None:
        say(f"Serving {folder} at {base} (Ctrl+C stops)")
        say(f"Your page: {researcher}")
        say(f"Links for people: rejoinder annotate invite {folder} -n 5")

    annotate.serve(
        folder,
        host=host,
        port=port,
        database=database,
        address=address,
        proxy=proxy,
        on_ready=ready,
    )


@app.command("invite")
def invite(
    folder: StudyArgument,
    count: Annotated[int | None, typer.Option("-n", metavar="N", help="Number of people.")] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", metavar="NAME", help="A person; repeatable.")
    ] = None,
    database: DatabaseOption = None,
    address: AddressOption = None,
    json: JsonOption = False,
) -> None:
    """Add people and print a secret link for each."""
    from rejoinder.verbs import annotate

    result = annotate.invite(
        folder, count=count, names=name or (), database=database, address=address
    )
    if json:
        print_json(result)
        return
    for person, link in zip(result.names, result.links, strict=True):
        typer.echo(f"{person}\t{link}")


@app.command("status")
def status(
    folder: StudyArgument, database: DatabaseOption = None, json: JsonOption = False
) -> None:
    """Show progress, people, agreement and the ranking so far."""
    from rejoinder.reporting import study_tables
    from rejoinder.verbs import annotate

    result = annotate.status(folder, database=database)
    if json:
        print_json(result)
        return
    for line in study_tables.progress_lines(result.to_dict()):
        say(line)
    if result.status.plan is not None:
        for line in study_tables.plan_lines(result.to_dict()["plan"]):
            say(line)
    show(study_tables.people_table(result.to_dict()))
    if result.status.ranking:
        show(study_tables.ranking_table(result.to_dict()))


@app.command("export")
def export(
    folder: StudyArgument,
    output: OutputOption = None,
    raw: Annotated[
        Path | None,
        typer.Option(
            "--raw", metavar="FILE", help="Also one row per answer: .jsonl, .csv or .parquet."
        ),
    ] = None,
    pseudonyms: Annotated[bool, flag("--pseudonyms", "Write pseudonyms instead of names.")] = False,
    dimension: Annotated[
        str | None,
        typer.Option("--dimension", metavar="NAME", help="Which question's ratings to export."),
    ] = None,
    drop_annotator: DropAnnotatorOption = None,
    drop_unreliable: DropUnreliableOption = False,
    database: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Write the answers as 'meta', 'pairs fit', 'score' and 'compare' read them."""
    from rejoinder.errors import UsageError
    from rejoinder.verbs import annotate

    if problems := stdout_problems(json, output, "items"):
        raise UsageError(*problems)
    result = annotate.export(
        folder,
        output="-" if output is None else output,
        raw=raw,
        database=database,
        pseudonyms=pseudonyms,
        drop_unreliable=drop_unreliable,
        drop_annotators=drop_annotator or (),
        dimension=dimension,
    )
    if json:
        print_json(result)
        return
    say(f"{len(result.records):,} {result.content} from {len(result.answers):,} answers")
    for path in result.others:
        say(f"also written: {path}")
    if result.left_out:
        say(f"left out: {', '.join(result.left_out)}")
    for note in result.notes:
        say(note)


@app.command("import")
def import_answers(
    folder: StudyArgument,
    files: Annotated[list[str], typer.Argument(metavar="FILES", help="Exports of the program.")],
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="NAME", help="potato or label-studio.")
    ],
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="TEXT=VALUE", help="A number, or a, b, tie; repeatable."),
    ] = None,
    item_field: Annotated[
        str | None,
        typer.Option("--item-field", metavar="NAME", help="Label Studio: field of the item's id."),
    ] = None,
    pair_fields: Annotated[
        str | None,
        typer.Option("--pair-fields", metavar="A,B", help="Label Studio: ids of the two replies."),
    ] = None,
    dimension: Annotated[
        list[str] | None,
        typer.Option("--dimension", metavar="NAME", help="Only this question; repeatable."),
    ] = None,
    database: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Add answers that people gave in Potato or Label Studio."""
    from rejoinder.verbs import annotate

    result = annotate.import_answers(
        folder,
        files,
        format=format,
        labels=annotate.parse_labels(label or ()),
        item_field=item_field,
        pair_fields=pair_fields.split(",") if pair_fields else (),
        dimensions=dimension or (),
        database=database,
    )
    if json:
        print_json(result)
        return
    say(f"{result.answers:,} answers of {result.people:,} people imported")
    if result.repeated:
        say(f"{result.repeated:,} answers were in the study already")
    for reason, count in result.unknown.items():
        say(f"{count:,} left out: {reason}")


@app.command("rehearse")
def rehearse(
    folder: StudyArgument,
    people: Annotated[
        int | None, count_option("--people", "Simulated people; by default enough for the study.")
    ] = None,
    careless: Annotated[
        int | None, count_option("--careless", "How many of them answer without reading.", min=0)
    ] = None,
    fast: Annotated[
        int | None, count_option("--fast", "How many of them are too fast.", min=0)
    ] = None,
    pasting: Annotated[
        int | None,
        count_option("--pasting", "How many of them paste what they should write.", min=0),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", metavar="S", help="Median time of an answer; 4 times the study's minimum."
        ),
    ] = None,
    seed: Annotated[int, seed_option()] = SEED,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="NEW", help="Keep the copy with its answers here."),
    ] = None,
    database: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Let simulated people answer a copy of the study, before real people come.

    They have known opinions and use the real pages over HTTP. The report says what was planted and
    what came out: agreement, ranking, who was careless, how long the study takes.
    """
    from rejoinder.reporting import rehearsal_tables
    from rejoinder.verbs import annotate

    result = annotate.rehearse(
        folder,
        people=people,
        careless=careless,
        fast=fast,
        pasting=pasting,
        seconds=seconds,
        seed=seed,
        keep=keep,
        database=database,
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    rehearsal = result.to_dict()
    for line in rehearsal_tables.summary_lines(rehearsal):
        say(line)
    show(rehearsal_tables.comparison_table(rehearsal))
    show(rehearsal_tables.people_table(rehearsal))


@app.command("forget")
def forget(
    folder: StudyArgument,
    person: Annotated[str, typer.Argument(metavar="PERSON", help="Name or pseudonym.")],
    answers: Annotated[bool, flag("--answers", "Delete their answers, too.")] = False,
    database: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Delete a person's name, link and comments; answers stay under a pseudonym."""
    from rejoinder.verbs import annotate

    result = annotate.forget(folder, person, answers=answers, database=database)
    if json:
        print_json(result)
        return
    kept = "answers deleted" if result.answers_deleted else f"answers kept as {result.pseudonym}"
    say(f"{person} is forgotten; {kept}")
