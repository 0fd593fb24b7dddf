"""The operator, but a launch whose application opens Spark's ports makes no Secret for them.

The operator makes that Secret for each launch, whether or not the application opens its ports in ``spec.sparkConf``: so
the field alone saves a volume and some settings, and not the create, which is most of what closed ports cost a launch.
Starts the operator.
"""

import runpy
from unittest.mock import patch

from tidegate.access.builders.launch_secrets import build_agent_secret
from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.api.streaming_app import StreamingApp
from tidegate.kube.failures import Failure
from tidegate.pods.spark.settings import authenticates
from tidegate_spark.contract.agent_protocol import Launch


class SecretsByPorts(LaunchSecrets):
    """Makes the Secrets of a launch, that of Spark's ports only if these are closed."""

    async def ensure(self, app: StreamingApp, epoch: int) -> Failure | None:
        """Have the Secrets of a launch; returns why one could not be made."""
        if authenticates(app.spec.spark_conf):
            return await super().ensure(app, epoch)
        metadata = app.metadata
        launch = Launch(metadata.namespace, metadata.name, metadata.uid, epoch)
        token, number = self._keys.inspection_token(launch), self._keys.number(launch)
        return await self._make(build_agent_secret(app, epoch, self._platform, token, number))


if __name__ == "__main__":
    with patch("tidegate.wiring.assembly.LaunchSecrets", SecretsByPorts):
        runpy.run_module("tidegate.main", run_name="__main__", alter_sys=True)
