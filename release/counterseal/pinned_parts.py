"""What `pip install counterseal` installs: the parts of the product, of one version."""

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class PinnedParts(MetadataHookInterface):
    """Pins each part to the version of this distribution."""

    def update(self, metadata: dict[str, Any]) -> None:
        version = metadata["version"]
        metadata["dependencies"] = [
            f"counterseal-client=={version}",
            f"counterseal-server[local]=={version}",
        ]
        metadata["optional-dependencies"] = {"demo": [f"counterseal-demo=={version}"]}
