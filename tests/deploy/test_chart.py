"""The chart: read by Helm's own library, and its manifests by Kubernetes' schemas."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from typing import Any

from hitl.command_line import COMMANDS
from hitl.environment import Counterseal
from tests.deploy.programs import CHARTS, DEPLOY
from tests.guards import ROOT, lacking

CHART = DEPLOY / "helm" / "counterseal"
GIVEN = {"existingSecret": "gate", "config": {"BASE_URL": "https://gate.example.com"}}
INGRESS = {"enabled": True, "host": "gate.example.com", "tlsSecret": "gate-tls"}
REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"config": GIVEN["config"]}, "existingSecret"),
    ({"existingSecret": "gate"}, "BASE_URL"),
    (GIVEN | {"config": {"BASE_URL": "https://gate.example.com/desk"}}, "BASE_URL"),
    (
        GIVEN | {"config": {"BASE_URL": "https://gate.example.com", "DATA_KEY": "x"}},
        "DATA_KEY",
    ),
    (GIVEN | {"ingress": {"enabled": True}}, "ingress"),
    (GIVEN | {"replicas": 3}, "replicas"),
)


@cache
def read_chart() -> Any:
    if not CHARTS.exists():
        lacking(f"{CHARTS.relative_to(ROOT)} (make charts)")
    command = [str(CHARTS), str(ROOT / "tests/deploy/render_chart.py"), str(CHART)]
    values = [GIVEN, GIVEN | {"ingress": INGRESS}, *(each for each, _ in REFUSED)]
    done = subprocess.run(
        command, input=json.dumps(values), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def list_pods(manifests: list[Any]) -> dict[str, Any]:
    return {
        manifest["metadata"]["labels"]["app.kubernetes.io/component"]: manifest
        for manifest in manifests
        if "template" in manifest["spec" if "spec" in manifest else "metadata"]
    }


def test_helm_finds_no_fault() -> None:
    report = read_chart()["lint"]
    assert report["errors"] == []
    assert all(message["severity"] == 1 for message in report["messages"])


def test_the_manifests_are_complete() -> None:
    least, most = read_chart()["rendered"][:2]
    kinds = sorted({manifest["kind"] for manifest in most})
    assert kinds == [
        *("Deployment", "Ingress", "Job", "NetworkPolicy", "PodDisruptionBudget"),
        *("Service", "ServiceAccount", "StatefulSet"),
    ]
    assert "Ingress" not in {manifest["kind"] for manifest in least}
    assert set(list_pods(most)) == {"web", "worker", "beat", "migrate"}


def test_no_container_may_do_more_than_it_must() -> None:
    pods = list_pods(read_chart()["rendered"][0])
    for name, manifest in pods.items():
        pod = manifest["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        # Where nothing else is writable, /tmp and STATE have to be.
        paths = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert paths == {"/tmp", "/var/lib/counterseal"}
        assert pod["terminationGracePeriodSeconds"] == 20
        assert container["resources"]["limits"]["memory"]
        assert container["args"][0] in COMMANDS


def test_secrets_come_by_reference_alone() -> None:
    manifests = read_chart()["rendered"][1]
    assert "Secret" not in {manifest["kind"] for manifest in manifests}
    for manifest in list_pods(manifests).values():
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        assert container["envFrom"] == [{"secretRef": {"name": "gate"}}]
    schema = json.loads((CHART / "values.schema.json").read_text())
    refused = schema["properties"]["config"]["propertyNames"]["not"]["enum"]
    secrets = {
        name.upper()
        for name, field in Counterseal.model_fields.items()
        if field.repr is False and not name.startswith("otel_")
    }
    assert secrets - {"AGENT_KEY"} <= set(refused)


def test_values_that_cannot_work_are_refused_by_name() -> None:
    errors = read_chart()["rendered"][2:]
    for (values, name), error in zip(REFUSED, errors, strict=True):
        assert isinstance(error, str), values
        assert name in error, (values, error)


def test_the_health_of_a_web_process_is_asked_by_address() -> None:
    web = list_pods(read_chart()["rendered"][0])["web"]["spec"]
    (container,) = web["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
    assert web["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_the_chart_has_the_version_of_the_release() -> None:
    text = (CHART / "Chart.yaml").read_text()
    version = (ROOT / "client/counterseal_client/version.py").read_text()
    (released,) = re.findall(r'__version__ = "(.+)"', version)
    assert re.findall(r"^(?:appV|v)ersion: (.+)$", text, re.M) == [released, released]
