"""Which Spark settings a spec or a script cannot set, and what to do instead: one table for all. Pure.

Tidegate or a field of the spec owns some; others would have no effect, because Tidegate creates the driver's pod. CRD
and guide are compared with this table, and the runtime reports settings of a script by it.
"""

from __future__ import annotations

CLIENT_MODE = "Tidegate runs the driver in client mode on this cluster"
NO_CONNECT = "leave it out: Spark runs in the driver's pod, and Spark Connect does not run here"
NO_SUBMISSION = "Tidegate creates the driver's pod itself, and nothing is submitted"
APP_ID = "Spark makes one for each driver process, which keeps its executors apart from those of an earlier one"
POD_ADDRESS = "Tidegate sets it to the pod's address"
DRIVER_MEMORY = "use driver.resources.requests.memory, which covers the whole container"
EXECUTOR_MEMORY = "use executor.resources.requests.memory, which covers the whole container"
EXECUTOR_INSTANCES = "use executor.instances, or scale the StreamingApp"
ENDPOINT = "use storage.endpoint; for inputs in another bucket, spark.hadoop.fs.s3a.bucket.BUCKET.endpoint"
REGION = "use storage.region; for inputs in another bucket, spark.hadoop.fs.s3a.bucket.BUCKET.endpoint.region"
PATH_STYLE = (
    "use storage.pathStyleAccess; for inputs in another bucket, spark.hadoop.fs.s3a.bucket.BUCKET.path.style.access"
)
NAMESPACE = "an application runs in its resource's namespace"
POD_NAMES = "Tidegate names the pods"
PYTHON_PATH = "use application.env, whose PYTHONPATH is put behind the runtime's"
DRIVER_PYTHON = "use application.image, whose python3 on its PATH runs the driver"
BOTH_TEMPLATES = "use podTemplate for driver and executors, or executor.podTemplate for executors alone"
DRIVER_TEMPLATE, EXECUTOR_TEMPLATE = "use driver.podTemplate", "use executor.podTemplate"
DRIVER_CPU, DRIVER_CPU_LIMIT = "use driver.resources.requests.cpu", "use driver.resources.limits.cpu"
IMAGE, SERVICE_ACCOUNT = "use application.image", "use serviceAccountName"

OWNED_KEYS: dict[str, str] = {
    "spark.master": CLIENT_MODE,
    "spark.submit.deployMode": CLIENT_MODE,
    "spark.remote": NO_CONNECT,
    "spark.api.mode": NO_CONNECT,
    "spark.submit.pyFiles": "use application.pyFiles",
    "spark.app.id": APP_ID,
    "spark.driver.host": POD_ADDRESS,
    "spark.driver.bindAddress": POD_ADDRESS,
    "spark.driver.cores": DRIVER_CPU,
    "spark.driver.supervise": "use restart.policy",
    "spark.driver.memoryOverhead": DRIVER_MEMORY,
    "spark.driver.memoryOverheadFactor": DRIVER_MEMORY,
    "spark.pyspark.driver.python": DRIVER_PYTHON,
    "spark.executor.instances": "use executor.instances",
    "spark.executor.cores": "use executor.cores",
    "spark.cores.max": EXECUTOR_INSTANCES,
    "spark.executor.memoryOverhead": EXECUTOR_MEMORY,
    "spark.executor.memoryOverheadFactor": EXECUTOR_MEMORY,
    "spark.kubernetes.memoryOverheadFactor": EXECUTOR_MEMORY,
    "spark.sql.shuffle.partitions": "use state.partitions",
    "spark.sql.streaming.checkpointLocation": "use storage.uri",
    "spark.sql.streaming.minBatchesToRetain": "use state.minBatchesToRetain",
    "spark.hadoop.fs.s3a.endpoint": ENDPOINT,
    "spark.hadoop.fs.s3a.endpoint.region": REGION,
    "spark.hadoop.fs.s3a.path.style.access": PATH_STYLE,
    "spark.kubernetes.namespace": NAMESPACE,
    "spark.kubernetes.container.image": IMAGE,
    "spark.kubernetes.driver.container.image": IMAGE,
    "spark.kubernetes.executor.container.image": IMAGE,
    "spark.kubernetes.container.image.pullPolicy": "use application.imagePullPolicy",
    "spark.kubernetes.container.image.pullSecrets": "use application.imagePullSecrets",
    "spark.kubernetes.driver.pod.name": POD_NAMES,
    "spark.kubernetes.driver.resourceNamePrefix": POD_NAMES,
    "spark.kubernetes.executor.podNamePrefix": POD_NAMES,
    "spark.kubernetes.driver.request.cores": DRIVER_CPU,
    "spark.kubernetes.driver.limit.cores": DRIVER_CPU_LIMIT,
    "spark.kubernetes.driver.master": CLIENT_MODE,
    "spark.kubernetes.executor.podTemplateFile": EXECUTOR_TEMPLATE,
    "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_TEMPLATE,
    "spark.kubernetes.executor.request.cores": "use executor.resources.requests.cpu",
    "spark.kubernetes.executor.limit.cores": "use executor.resources.limits.cpu",
    "spark.kubernetes.scheduler.name": BOTH_TEMPLATES,
    "spark.kubernetes.authenticate.driver.serviceAccountName": SERVICE_ACCOUNT,
    "spark.kubernetes.authenticate.executor.serviceAccountName": SERVICE_ACCOUNT,
    "spark.kubernetes.submitInDriver": NO_SUBMISSION,
    "spark.kubernetes.file.upload.path": NO_SUBMISSION,
    "spark.kubernetes.report.interval": NO_SUBMISSION,
    "spark.kubernetes.resource.type": NO_SUBMISSION,
    "spark.executorEnv.PYTHONPATH": PYTHON_PATH,
}
"""Settings, each with what to do instead."""

OWNED_STARTS: dict[str, str] = {
    "spark.kubernetes.driver.secretKeyRef.": "use application.env, with valueFrom.secretKeyRef",
    "spark.kubernetes.driver.": DRIVER_TEMPLATE,
    "spark.kubernetes.driverEnv.": "use application.env",
    "spark.kubernetes.node.selector.": BOTH_TEMPLATES,
    "spark.kubernetes.submission.": NO_SUBMISSION,
    "spark.kubernetes.authenticate.submission.": NO_SUBMISSION,
    "spark.dynamicAllocation.": EXECUTOR_INSTANCES,
    "spark.yarn.": CLIENT_MODE,
    "spark.streaming.": "it is a setting of DStreams; those of Structured Streaming start with spark.sql.streaming",
    "spark.hadoop.tidegate.": "it belongs to Tidegate's runtime",
    "spark.executorEnv.TIDEGATE_": "choose another name; these variables belong to Tidegate",
}
"""What settings start with, of which none has an effect or belongs to anybody else; the first that fits holds."""

IN_EFFECT = (
    "spark.kubernetes.driver.connectionTimeout",
    "spark.kubernetes.driver.requestTimeout",
    "spark.kubernetes.driver.service.deleteOnTermination",
    "spark.kubernetes.driver.ownPersistentVolumeClaim",
    "spark.kubernetes.driver.reusePersistentVolumeClaim",
    "spark.kubernetes.driver.waitToReusePersistentVolumeClaim",
)
"""What Spark reads in client mode, too, although it starts like one that has no effect."""


def for_executors_alone(key: str) -> str:
    """Return the setting that does for executors what ``key`` does for them; empty if there is none.

    These two reach executors alone where nothing is submitted. A spec from before they were refused may have them.
    """
    both = key.startswith("spark.kubernetes.node.selector.") or key == "spark.kubernetes.scheduler.name"
    return key.replace("spark.kubernetes.", "spark.kubernetes.executor.", 1) if both else ""


def remedy_of(key: str) -> str:
    """Return what to do instead of setting ``key``; empty if it may be set."""
    if key in OWNED_KEYS:
        return OWNED_KEYS[key]
    if key in IN_EFFECT:
        return ""
    return next((remedy for start, remedy in OWNED_STARTS.items() if key.startswith(start)), "")
