"""A damaged export of another program is read or refused with a DataError, never a crash."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from annotate.imports.given import FLUENCY, LABEL_STUDIO, POTATO_1, POTATO_2
from rejoinder.annotate.imports.label_studio import read_label_studio
from rejoinder.annotate.imports.potato import read_potato
from rejoinder.errors import DataError

WRONG = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3),
    st.sampled_from([[], {}, [{}], [None], {"": []}, [{"rating": []}], {"choices": [1]}]),
)


def damaged(value: Any, draw: Any) -> Any:
    """Replace or remove one value, chosen on a way from the root."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 5)) == 0:
        return draw(WRONG)
    key = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
    if draw(st.integers(0, 7)) == 0:
        del value[key]
    else:
        value[key] = damaged(value[key], draw)
    return value


def read_or_refuse(read: Any, name: str, content: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(content)
        try:
            for one in read(path, labels=FLUENCY):
                assert isinstance(one.person, str)
                assert isinstance(one.item, str)
                assert all(
                    isinstance(x, float) or x in ("a", "b", "tie") for x in one.values.values()
                )
        except DataError as error:
            assert str(error).startswith(str(path))


STATES = sorted(POTATO_2.glob("*/output/*/user_state.json"))


@given(st.data())
def test_damaged_states_of_potato(data: st.DataObject) -> None:
    state = json.loads(data.draw(st.sampled_from(STATES)).read_bytes())
    read_or_refuse(read_potato, "user_state.json", json.dumps(damaged(state, data.draw)))


@given(st.data())
def test_damaged_lines_of_potato(data: st.DataObject) -> None:
    paths = [POTATO_1 / "annotated_instances.jsonl", POTATO_2 / "ratings" / "annotations.jsonl"]
    lines = data.draw(st.sampled_from(paths)).read_text().splitlines()
    record = damaged(json.loads(lines[0]), data.draw)
    read_or_refuse(read_potato, "a.jsonl", "\n".join([json.dumps(record), *lines[1:]]))


@given(st.data())
def test_damaged_exports_of_label_studio(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(LABEL_STUDIO.glob("*.json"))))
    tasks = damaged(json.loads(path.read_bytes()), data.draw)
    read_or_refuse(read_label_studio, "export.json", json.dumps(tasks))


@given(st.data())
def test_cut_files(data: st.DataObject) -> None:
    files = sorted(LABEL_STUDIO.glob("*.*")) + sorted((POTATO_2 / "ratings").glob("*.*"))
    path = data.draw(st.sampled_from(files))
    text = path.read_text()
    read = read_label_studio if path.parent == LABEL_STUDIO else read_potato
    read_or_refuse(read, path.name, text[: data.draw(st.integers(0, len(text)))])
