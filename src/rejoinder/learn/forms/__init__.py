"""The forms in which networks read texts, made from settings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import UsageError
from rejoinder.learn.forms.base import FORMS, Form, form_class
from rejoinder.spec import did_you_mean

if TYPE_CHECKING:
    from rejoinder.learn.material import Material


def make_form(name: str, options: Mapping[str, Any], material: Material, work: Path) -> Form:
    """A new form for networks that learn from this material.

    ``options`` are those of the form's ``make``: pieces, embedding, hidden, longest (gru); model,
    or vectors, tokenizer and lower (vectors); model, frozen, longest (encoder). What is made on
    the way is kept in ``work``, for a call that is repeated.
    """
    check_options(name, options)
    return form_class(name).make(material, work, **options)


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """UsageError unless there is such a form, and it takes these options."""
    if name not in FORMS:
        raise UsageError(f"unknown form '{name}': {did_you_mean(name, FORMS)}")
    known = set(inspect.signature(form_class(name).make).parameters) - {"material", "work"}
    if wrong := [key for key in options if key not in known]:
        raise UsageError(
            *(f"form {name} has no setting '{key}': {did_you_mean(key, known)}" for key in wrong)
        )
