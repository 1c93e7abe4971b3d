"""Load metrics from a Python file that the user names."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path

from rejoinder.errors import Terminated, UsageError
from rejoinder.files.paths import open_regular
from rejoinder.metrics.metric import Metric
from rejoinder.registry import METRICS
from rejoinder.spec import Spec, parse


def load_plugin(path: str | Path) -> list[str]:
    """Execute a Python file and register the metrics that it defines; return their names.

    The file runs with the rights of the user, so it is loaded only if the user names it.
    """
    with open_regular(path):
        pass  # an unreadable file is a DataError
    name = f"rejoinder_plugin_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"plugin {path}: expected the name of a Python file (.py)")
    try:
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
    except (KeyboardInterrupt, Terminated):
        raise
    except BaseException as error:  # the file may end the process, too
        sys.modules.pop(name, None)
        text = f": {error}" if str(error) else ""
        raise UsageError(f"plugin {path}: {type(error).__name__}{text}") from error
    metrics = [
        each
        for _, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, Metric) and each.__module__ == name and hasattr(each, "name")
    ]
    if not metrics:
        raise UsageError(f"plugin {path}: defines no metric; expected a subclass of ItemMetric")
    for each in metrics:
        if lacking := sorted(getattr(each, "__abstractmethods__", ())):
            raise UsageError(f"plugin {path}: {each.__name__} lacks {', '.join(lacking)}")
        if not _is_name(each.name):
            raise UsageError(
                f"plugin {path}: {each.__name__} has the name {each.name!r}; expected letters,"
                " digits and hyphens, such as 'my-metric'"
            )
        if each.name in METRICS.builtin:
            raise UsageError(f"plugin {path}: the name '{each.name}' is taken by a built-in metric")
        METRICS.add(each.name, each)
    return [each.name for each in metrics]


def _is_name(name: object) -> bool:
    """Return whether a metric can be named so in a spec."""
    try:
        return isinstance(name, str) and parse(name) == Spec(name)
    except UsageError:
        return False
