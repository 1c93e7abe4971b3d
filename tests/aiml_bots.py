"""Bots for tests, made of a few categories."""

from __future__ import annotations

from pathlib import Path

from rejoinder.systems.aiml.rules import RuleSet, load
from rejoinder.systems.aiml.session import Session


def category(pattern: str, template: str, that: str = "") -> str:
    that = f"<that>{that}</that>" if that else ""
    return f"<category><pattern>{pattern}</pattern>{that}<template>{template}</template></category>"


def write(folder: Path, *categories: str, name: str = "rules.aiml", version: str = "2.0") -> Path:
    text = "\n".join(categories)
    (folder / name).write_text(f'<aiml version="{version}">\n{text}\n</aiml>\n', "utf-8")
    return folder


def bot(folder: Path, *categories: str) -> RuleSet:
    return load(str(write(folder, *categories)))


def chat(rules: RuleSet, *inputs: str, choose=lambda count: 0) -> list[str]:
    session = Session(rules, choose)
    return [session.respond(text)[0] for text in inputs]
