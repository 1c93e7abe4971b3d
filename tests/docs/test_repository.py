"""Files that hosts and indexes read: workflows, templates, citation, versions."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml

from docs.blocks import ROOT
from rejoinder.version import __version__

YAML = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_yaml_is_valid(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text("utf-8")), dict)


def test_workflow_jobs() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    assert set(workflow["jobs"]) == {"lint", "types", "test", "wheel", "docs"}
    systems = workflow["jobs"]["test"]["strategy"]["matrix"]["os"]
    assert systems == ["ubuntu-latest", "macos-latest"]


def test_versions_agree() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert changelog.split("\n## ")[1].split("\n")[0] == __version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__


def test_extras_exist_that_the_makefile_installs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for extras in ("logs,encoder,chitchat,pandas", "dev"):
        assert f"-e '.[{extras}]'" in makefile
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
