"""Runs where Helm's library and the schemas of Kubernetes are installed, which are
heavier than all else: `make charts`. Reads a list of values from standard input, and
prints for each the manifests or why Helm refuses the values, and once what Helm's lint
says."""

from __future__ import annotations

import json
import sys
from typing import Any

import helm_python as helm  # type: ignore[import-not-found]
import kubernetes_validate  # type: ignore[import-not-found]
import yaml

VERSIONS = ("1.25.0", "1.37.0")  # the oldest that the chart takes, and the newest


def main(folder: str) -> None:
    given = json.load(sys.stdin)
    with helm.Chart.load(folder) as chart:
        rendered = [render(chart, values) for values in given]
    report = helm.lint(folder, given[0], strict=True)
    json.dump({"lint": report, "rendered": rendered}, sys.stdout)


def render(chart: Any, values: dict[str, Any]) -> Any:
    try:
        chart.validate_schema(values)
        files = chart.render(values, name="gate", namespace="counterseal")
    except helm.HelmError as error:
        return str(error)
    manifests = [
        manifest
        for text in files.values()
        for manifest in yaml.safe_load_all(text)
        if manifest
    ]
    for manifest in manifests:
        for version in VERSIONS:
            kubernetes_validate.validate(manifest, version, strict=True)
    return manifests


if __name__ == "__main__":
    main(sys.argv[1])
