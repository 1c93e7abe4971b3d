"""Read parts of folders that other people made: evaluators, indexes, model folders, vectors.

A matching digest only proves that the author of the manifest wrote the part, too. So every part is
checked for size, type, shape, range and schema before it is used; what is wrong raises DataError
with the part's path. Nothing here runs code or unpickles.
"""

from __future__ import annotations

import math
import os
import tokenize
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from rejoinder.errors import DataError, missing_extra
from rejoinder.files.jsonl import explain
from rejoinder.files.paths import AnyPath, open_regular, reason

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MAX_BYTES = 256 * 2**20
MAX_JSON_BYTES = 64 * 2**20
"""A tokenizer of 250,000 pieces takes 17 MB."""
MAX_TOML_BYTES = 2**20

Shape = Sequence[int | None]


def inside(folder: AnyPath, name: str) -> Path:
    """Return the path of a folder's part; a name or link that leaves the folder is refused."""
    folder = Path(folder)
    if not name or "\0" in name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise DataError(f"names a part outside of the folder: {name!r}", path=str(folder))
    path = folder / name
    root = os.path.realpath(folder)
    if os.path.commonpath([root, os.path.realpath(path)]) != root:
        raise DataError("is a link that leaves the folder; copy the file instead", path=str(path))
    return path


def read_bytes(path: AnyPath, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a small file whole."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise _wrong(path, f"has {size:,} bytes; expected {max_bytes:,} at most")
        try:
            return file.read(max_bytes + 1)
        except OSError as error:
            raise _wrong(path, f"cannot be read: {reason(error)}") from None


def read_json(path: AnyPath, type: Any = Any, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """Read a JSON file and convert it to ``type``, for example a msgspec struct."""
    content = read_bytes(path, max_bytes)
    try:
        return msgspec.json.decode(content, type=type)
    except msgspec.ValidationError as error:
        raise _wrong(path, explain(str(error))) from None
    except RecursionError:
        raise _wrong(path, "is nested too deeply") from None
    except OverflowError:
        raise _wrong(path, "a number is too large") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _wrong(path, f"is not JSON ({error})") from None


def read_toml(path: AnyPath, type: Any = Any, max_bytes: int = MAX_TOML_BYTES) -> Any:
    """Read a TOML file, such as a recipe or a preset, and convert it to ``type``."""
    import tomllib

    content = read_bytes(path, max_bytes)
    try:
        return msgspec.convert(tomllib.loads(content.decode()), type)
    except UnicodeDecodeError:
        raise _wrong(path, "the file is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise _wrong(path, f"broken TOML: {error}") from None
    except RecursionError:
        raise _wrong(path, "broken TOML: nested too deeply") from None
    except msgspec.ValidationError as error:
        raise _wrong(path, explain(str(error))) from None
    except (ValueError, OverflowError) as error:  # such as a number of 5,000 digits
        raise _wrong(path, f"broken TOML: {error}") from None


def read_array(
    path: AnyPath,
    *,
    dtype: str | tuple[str, ...],
    shape: Shape | None = None,
    ndim: int | None = None,
    low: float | None = None,
    high: float | None = None,
    finite: bool = False,
    mmap: bool = False,
) -> NDArray[Any]:
    """Read, or map, an array of an .npy file.

    ``dtype`` names the allowed types (``"float32"``); None in ``shape`` means any length.
    ``low``, ``high`` (both inclusive) and ``finite`` look at every value, which reads the file.
    """
    import numpy as np

    with open_regular(path) as file:
        stored_shape, stored_dtype = _npy_header(path, file)
        _check_array(path, stored_dtype, stored_shape, dtype, shape, ndim)
        expected = file.tell() + math.prod(stored_shape) * stored_dtype.itemsize
        size = os.fstat(file.fileno()).st_size
        if size != expected:
            raise _wrong(
                path, f"has {size:,} bytes; expected {expected:,} for shape {stored_shape}"
            )
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    except OSError as error:
        raise _wrong(path, f"cannot be read: {reason(error)}") from None
    except (ValueError, EOFError, MemoryError) as error:
        raise _wrong(path, f"is no array that can be read ({error})") from None
    check_values(path, array, low=low, high=high, finite=finite)
    return array


def check_values(
    path: AnyPath,
    array: NDArray[Any],
    *,
    low: float | None = None,
    high: float | None = None,
    finite: bool = False,
) -> None:
    """Refuse an array with a value below ``low``, above ``high``, or (``finite``) not a number."""
    import numpy as np

    if not array.size:
        return
    if finite and not np.isfinite(array).all():
        raise _wrong(path, "holds a value that is not a number; expected finite values")
    if low is not None and array.min() < low:
        raise _wrong(path, f"holds the value {array.min()}; expected {low} at least")
    if high is not None and array.max() > high:
        raise _wrong(path, f"holds the value {array.max()}; expected {high} at most")


def read_npz(path: AnyPath, dtypes: Mapping[str, str | tuple[str, ...]]) -> dict[str, Any]:
    """Read the named arrays of an .npz file, each of one of its allowed types."""
    import zipfile
    import zlib

    import numpy as np

    arrays = {}
    try:
        with open_regular(path) as file:
            stored = np.load(file, allow_pickle=False)
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise _wrong(path, "is no .npz file")
            for name, dtype in dtypes.items():
                if name not in stored.files:
                    raise _wrong(path, f"has no array '{name}'")
                arrays[name] = stored[name]
                _check_array(path, arrays[name].dtype, arrays[name].shape, dtype, None, None)
    except OSError as error:
        raise _wrong(path, f"cannot be read: {reason(error)}") from None
    except (ValueError, EOFError, MemoryError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise _wrong(path, f"is damaged or no .npz file ({error})") from None
    except (NotImplementedError, RuntimeError) as error:  # other compressions, encryption
        raise _wrong(path, f"is no .npz file that can be read ({error})") from None
    return arrays


def read_table(path: AnyPath, columns: Mapping[str, str], *, mmap: bool = False) -> pa.Table:
    """Read, or map, a table of an Arrow IPC file.

    ``columns`` maps the expected names to types (``"string"``, ``"list<string>"``, ``"int64"``;
    several separated by ``|``). The table must have exactly these columns, without nulls.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise missing_extra("logs", "pyarrow", task="reading Arrow files") from None

    with open_regular(path):
        pass
    try:
        source = pa.memory_map(str(path)) if mmap else pa.OSFile(str(path))
        with pa.ipc.open_file(source) as reader:
            _check_columns(path, reader.schema, columns)
            table = reader.read_all()
        table.validate(full=True)
    except OSError as error:
        raise _wrong(path, f"cannot be read: {reason(error)}") from None
    except (pa.ArrowException, MemoryError) as error:
        raise _wrong(path, f"is damaged or no Arrow file ({_first_line(error)})") from None
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        nested = values.values if pa.types.is_list(column.type) else None
        if values.null_count or (nested is not None and nested.null_count):
            raise _wrong(path, f"column '{name}' has empty cells (nulls); expected none")
    return table


def check_finite(path: AnyPath, name: str, tensor: Any) -> None:
    """Refuse a tensor of torch or numpy with a value that is not a number, or infinite."""
    kind = getattr(tensor, "is_floating_point", None)
    floating = kind() if kind is not None else tensor.dtype.kind == "f"
    if not floating:
        return
    # one pass without a temporary of the same size: a sum is finite only if all values are, up
    # to an overflow, which float64 rules out for weights
    total = tensor.double().sum() if kind is not None else tensor.sum(dtype="float64")
    if not math.isfinite(float(total)):
        raise _wrong(path, f"tensor '{name}' holds a value that is not a number")


def _npy_header(path: AnyPath, file: IO[bytes]) -> tuple[tuple[int, ...], Any]:
    from numpy.lib import format as npy

    try:
        version = npy.read_magic(file)
        if version == (1, 0):
            shape, _, dtype = npy.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, _, dtype = npy.read_array_header_2_0(file)
        else:
            raise ValueError(f"version {version[0]}.{version[1]}")
    except OSError as error:
        raise _wrong(path, f"cannot be read: {reason(error)}") from None
    except (
        *(ValueError, TypeError, SyntaxError, EOFError, tokenize.TokenError),
        *(RecursionError, MemoryError, AttributeError, KeyError),
    ) as error:
        raise _wrong(path, f"is damaged or no .npy file ({_first_line(error)})") from None
    if any(length < 0 for length in shape):
        raise _wrong(path, f"has the shape {shape}")
    return shape, dtype


def _check_array(
    path: AnyPath,
    stored_dtype: Any,
    stored_shape: tuple[int, ...],
    dtype: str | tuple[str, ...],
    shape: Shape | None,
    ndim: int | None,
) -> None:
    import numpy as np

    allowed = (dtype,) if isinstance(dtype, str) else dtype
    if stored_dtype.hasobject:
        raise _wrong(path, f"holds Python objects; expected {' or '.join(allowed)}")
    if stored_dtype not in [np.dtype(name) for name in allowed]:
        raise _wrong(path, f"has values of type {stored_dtype}; expected {' or '.join(allowed)}")
    if ndim is not None and len(stored_shape) != ndim:
        raise _wrong(path, f"has {len(stored_shape)} dimensions; expected {ndim}")
    if shape is not None and not _fits(stored_shape, shape):
        raise _wrong(path, f"has the shape {stored_shape}; expected {_text(shape)}")


def _check_columns(path: AnyPath, schema: pa.Schema, columns: Mapping[str, str]) -> None:
    names = list(schema.names)
    if sorted(names) != sorted(columns):
        raise _wrong(
            path, f"has the columns {', '.join(names) or 'none'}; expected {', '.join(columns)}"
        )
    for field in schema:
        # list<item: string> is list<string>
        stored_type = str(field.type).replace("item: ", "").replace("element: ", "")
        stored_type = stored_type.replace(" not null", "")
        allowed = columns[field.name].split("|")
        if stored_type not in allowed and stored_type.replace("large_", "") not in allowed:
            raise _wrong(
                path,
                f"column '{field.name}' is of type {stored_type}; expected {' or '.join(allowed)}",
            )


def _fits(sizes: Sequence[int], shape: Shape) -> bool:
    return len(sizes) == len(shape) and all(
        wanted is None or size == wanted for size, wanted in zip(sizes, shape, strict=True)
    )


def _text(shape: Shape) -> str:
    return f"({', '.join('any' if size is None else str(size) for size in shape)})"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _wrong(path: AnyPath, message: str) -> DataError:
    return DataError(message, path=str(path))
