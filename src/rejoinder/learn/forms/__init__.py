"""The forms in which networks read texts, made from settings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from rejoinder.errors import UsageError
from rejoinder.learn.forms.base import FORMS, Form, form_class
from rejoinder.spec import Spec, converted, did_you_mean

if TYPE_CHECKING:
    from rejoinder.learn.material import Material

PLACES = {"material", "work", "home"}
"""What the caller gives to a form, not the settings."""


def make_form(name: str, options: Mapping[str, Any], material: Material, work: Path) -> Form:
    """A new form for networks that learn from this material.

    ``options`` are those of the form's ``make``: pieces, embedding, hidden, longest (gru); model,
    or vectors, tokenizer and lower, asks, below, joined (vectors); model, frozen, longest
    (encoder). What is made on the way is kept in ``work``, for a call that is repeated.
    """
    places = {key: value for key, value in options.items() if key in PLACES}
    rest = {key: value for key, value in options.items() if key not in PLACES}
    checked = check_options(name, rest)
    return form_class(name).make(material, work, **checked, **places)


def check_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the form takes them; UsageError unless there is such a form, and it does."""
    if name not in FORMS:
        raise UsageError(f"unknown form '{name}': {did_you_mean(name, FORMS)}")
    form = form_class(name)
    hints = get_type_hints(form.make, localns={"Material": Any})
    known = set(inspect.signature(form.make).parameters) - PLACES
    if wrong := [key for key in options if key not in known]:
        raise UsageError(
            *(f"form {name} has no setting '{key}': {did_you_mean(key, known)}" for key in wrong)
        )
    given = tuple((key, value) for key, value in options.items() if value is not None)
    values = converted(Spec(f"form {name}", given), {key: hints[key] for key in known})
    form.check(**values)
    return values
