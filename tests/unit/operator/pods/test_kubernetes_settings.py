"""What Spark's Kubernetes module can be told about pods, as its jar says: each setting was looked at. Reads the jar."""

import re
import zipfile
from pathlib import Path

import pyspark

from tidegate_spark.contract.owned_settings import IN_EFFECT, remedy_of

PREFIX = "spark.kubernetes."
REFUSED = {
    "allocation.pods.allocator",
    "authenticate",
    "authenticate.driver",
    "authenticate.driver.mounted",
    "authenticate.executor",
    "authenticate.submission",
    "executor.pod.excludedFeatureSteps",
    "executor.pod.featureSteps",
    "executor.volumes.",
}
"""By admissionPolicies.applications.restrictPodTemplates."""
AS_A_TEMPLATE = {
    *("executor.annotation.", "executor.label.", "executor.decommissionLabel", "executor.decommissionLabelValue"),
    *("executor.hadoopConfigMapName", "executor.node.selector.", "node.selector.", "executor.podDeletionCost"),
    *("executor.scheduler.name", "scheduler.name", "executor.secretKeyRef.", "executor.secrets."),
    *("executor.terminationGracePeriodSeconds", "local.dirs.tmpfs", "hadoop.configMapName", "decommission.script"),
    *("kerberos.dt-secret-key", "kerberos.dt-secret-name", "kerberos.krb5.configMapName", "kerberos.krb5.path"),
    *("kerberos.tokenSecret.itemKey", "kerberos.tokenSecret.name", "executor.useDriverPodIP"),
    *("executor.pvc.resizeFactor", "executor.pvc.resizeInterval", "executor.pvc.resizeThreshold"),
    *("executor.resizeFactor", "executor.resizeInterval", "executor.resizeThreshold"),
}
"""They do nothing that a pod template may not do where the policy is in force, or need rights that no driver has."""
NOTHING_OF_PODS = {
    *("allocation.batch.delay", "allocation.batch.size", "allocation.driver.readinessTimeout"),
    *("allocation.executor.timeout", "allocation.maxPendingPods", "allocation.maxPendingPodsPerRp"),
    *("allocation.maximum", "allocation.recoveryMode.enabled", "appKillPodDeletionGracePeriod", "configMap.maxSize"),
    *("context", "dynamicAllocation.deleteGracePeriod", "executor.apiPollingInterval", "executor.checkAllContainers"),
    *("executor.deleteOnTermination", "executor.deletedExecutorsCacheTimeout", "executor.disableConfigMap"),
    *("executor.enableApiPolling", "executor.enableApiWatcher", "executor.enablePollingWithResourceVersion"),
    *("executor.eventProcessingInterval", "executor.minTasksPerExecutorBeforeRolling", "executor.rollInterval"),
    *("executor.missingPodDetectDelta", "executor.rollPolicy", "executorSnapshotsSubscribersShutdownGracePeriod"),
    *("file.upload.path", "legacy.useReadWriteOnceAccessMode", "memoryOverheadFactor", "report.interval"),
    *("resource.type", "submission.connectionTimeout", "submission.requestTimeout", "submission.waitAppCompletion"),
    *("submitInDriver", "trust.certificates"),
    *("scheduler.volcano.podGroupTemplateFile", "scheduler.volcano.podGroupTemplateJson"),
}


def settings_of_the_jar() -> set[str]:
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-kubernetes_*.jar")
    found: set[str] = set()
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.endswith(".class"):
                found |= {
                    each.decode() for each in re.findall(rb"spark\.kubernetes\.[A-Za-z0-9_.-]+", archive.read(name))
                }
    return {name.removeprefix(PREFIX) for name in found}


def test_a_new_spark_has_no_setting_of_pods_that_nobody_looked_at() -> None:
    # The driver's pod is made by Tidegate: what Spark would do to it in cluster mode has no effect, and is refused.
    free = {name for name in settings_of_the_jar() if not remedy_of(PREFIX + name)}
    in_effect = {key.removeprefix(PREFIX) for key in IN_EFFECT}
    assert free - in_effect - REFUSED - AS_A_TEMPLATE - NOTHING_OF_PODS - {"driver.pod."} == set()
    assert in_effect - settings_of_the_jar() == set()
