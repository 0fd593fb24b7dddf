"""Pods, nodes and the API server: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Pods, nodes and the API server",
    "guide/failures.md",
    (
        Entry(
            Reason.EXECUTORS_MISSING,
            Fault.CLUSTER,
            (Place.APP, Place.AUTOSCALING),
            (
                "Executors cannot be started; the message says how many run and what the others lack. While at least "
                "one runs, the application is Ready, but slower."
            ),
            remedy=(
                "Correct what the message names: the image, spec.executor.resources, the nodes, a ResourceQuota, an "
                "admission policy or a network policy."
            ),
            after="Spark asks for them again.",
        ),
        Entry(
            Reason.EXECUTORS_FAILING,
            Fault.VERSION,
            (Place.APP, Place.UPGRADE),
            (
                "Executors end by themselves: a wrong JVM option, a missing library, an exception. The message has the "
                "exit code and the last lines that one wrote."
            ),
            remedy="Correct what the last lines name: spec.sparkConf, spec.application.image or spec.executor.",
            after=(
                "Spark starts others after 10 seconds to 5 minutes. A new version whose executors all end soon after "
                "their start is rolled back."
            ),
        ),
        Entry(
            Reason.EXECUTORS_LOST,
            Fault.CLUSTER,
            (Place.APP,),
            (
                "Executors are ended from outside: preemption, an eviction, a drained node, or a node that does not "
                "answer. The message says which."
            ),
            remedy=(
                "If it recurs, see the node that the message names; raise spec.executor.resources.requests, or give "
                "the pods a higher priority in spec.podTemplate.spec.priorityClassName."
            ),
            after="Spark starts others, after a pause of at most 5 minutes if that recurs. No version is blamed.",
        ),
        Entry(
            Reason.EPHEMERAL_STORAGE_EXCEEDED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "The kubelet evicted the pod because it wrote more to its local disk than its limit of "
                "ephemeral-storage, or the sizeLimit of a volume, allows."
            ),
            remedy=(
                "Raise the limit that the message names, or remove it. More executors or state partitions leave less "
                "of the state on each."
            ),
            after="Another pod follows, after a pause of at most 5 minutes if that recurs.",
        ),
        Entry(
            Reason.DISK_FULL,
            Fault.CLUSTER,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "A process could not write to its local disk, where Spark has shuffle files and working copies of the "
                "state, because no space was left on it."
            ),
            remedy=(
                "Free space on the node, or request what the pod needs in ephemeral-storage of "
                "spec.driver.resources.requests and spec.executor.resources.requests, so that only a node with enough "
                "is chosen."
            ),
            after="It starts again with exponential back-off; the state itself is in the storage, and is complete.",
        ),
        Entry(
            Reason.EXECUTORS_LINGER,
            Fault.CLUSTER,
            (Place.APP,),
            (
                "All executors run, but a surplus one has not finished its tasks for ten minutes; the message names "
                "its pod."
            ),
            remedy=(
                'See "kubectl logs POD -n NAMESPACE" and the node of that pod. If you delete the pod, other '
                "executors run its tasks again, so what the tasks wrote outside of Spark may be written twice."
            ),
        ),
        Entry(
            Reason.EXECUTORS_STOPPING,
            Fault.NONE,
            (Place.APP,),
            "The application is being deleted, and so are its executors.",
        ),
        Entry(
            Reason.NODE_TAINTED,
            Fault.CLUSTER,
            (Place.APP,),
            "The node of the driver was tainted: it is being drained, or does not answer.",
            remedy=(
                'Nothing has to be done while the node is drained. If the machine of the node is off, run "kubectl '
                'taint nodes NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", which removes all pods '
                'of the node, and before the machine starts again "kubectl taint nodes NODE '
                'node.kubernetes.io/out-of-service-", which removes the taint.'
            ),
            after="A new driver follows when the old pod is gone.",
        ),
        Entry(
            Reason.IMAGE_PULL_FAILED,
            Fault.ENVIRONMENT,
            (Place.APP, Place.EXPORT),
            (
                "The image cannot be pulled: the application's, or Tidegate's own (in an init container, or in a pod "
                "that copies or deletes files)."
            ),
            remedy=(
                "Correct spec.application.image (for an export spec.export.image, with another spec.export.nonce) or "
                "spec.application.imagePullSecrets. Tidegate's own image is image.repository, image.tag and "
                "image.digest in the values of its chart."
            ),
            after="The kubelet tries again. An export fails after two minutes.",
        ),
        Entry(
            Reason.CONTAINER_REFUSED,
            Fault.VERSION,
            (Place.APP,),
            (
                "The node cannot start the container: a ConfigMap or Secret that does not exist, a command that does "
                "not exist, or a user that the image does not allow."
            ),
            remedy="Correct what the message names.",
            after="The kubelet tries again.",
        ),
        Entry(
            Reason.INIT_FAILED,
            Fault.VERSION,
            (Place.APP,),
            "An init container failed.",
            remedy=(
                '"kubectl logs POD -c CONTAINER -n NAMESPACE" says why. If it was killed for its memory, the message '
                "names the field that gives it more: spec.helpers.resources.limits.memory for Tidegate's own."
            ),
            after="It is run again.",
        ),
        Entry(
            Reason.UNSCHEDULABLE,
            Fault.CLUSTER,
            (Place.APP,),
            "No node accepts the pod.",
            remedy=(
                "Add nodes or free resources, lower spec.driver.resources.requests, or correct nodeSelector, affinity "
                "and tolerations in spec.podTemplate and spec.driver.podTemplate."
            ),
            after="The scheduler tries again.",
        ),
        Entry(
            Reason.REFERENCE_MISSING,
            Fault.VERSION,
            (Place.APP, Place.UPGRADE, Place.REPARTITION, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            (
                "A ConfigMap, Secret or PersistentVolumeClaim of a volume of the pod does not exist, or the ConfigMap "
                "or Secret lacks the key that the volume names; or an edit names an object or a key that does not "
                "exist. The message names it."
            ),
            remedy="Create it, or correct the reference in the spec.",
            after=(
                "The kubelet tries again. If a volume still lacks it after spec.podStartTimeoutSeconds, a new version "
                "is rolled back. If Tidegate finds before an upgrade that something which the edit names does not "
                "exist, it stops nothing, and the upgrade starts once that exists."
            ),
            page="guide/pods-that-do-not-start.md",
        ),
        Entry(
            Reason.VOLUME_NOT_MOUNTED,
            Fault.ENVIRONMENT,
            (Place.APP, Place.UPGRADE, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "A volume of the pod cannot be attached or mounted.",
            remedy="Correct what the message names: the volume, its server, or the node.",
            after="The kubelet tries again.",
            page="guide/pods-that-do-not-start.md",
        ),
        Entry(
            Reason.SANDBOX_FAILED,
            Fault.CLUSTER,
            (Place.APP, Place.UPGRADE, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "The node cannot prepare the pod: its network plugin has no address, or its container runtime fails.",
            remedy=(
                "Check the network and the container runtime of the node that the message names, or "
                "spec.podTemplate.spec.runtimeClassName."
            ),
            after="The kubelet tries again.",
            page="guide/pods-that-do-not-start.md",
        ),
        Entry(
            Reason.IMAGE_PULLING,
            Fault.NONE,
            (Place.APP, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "The node has been pulling an image of the pod for longer than spec.podStartTimeoutSeconds.",
            page="guide/pods-that-do-not-start.md",
        ),
        Entry(
            Reason.POD_NOT_STARTING,
            Fault.CLUSTER,
            (Place.APP, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            (
                "No container of the pod has started for longer than spec.podStartTimeoutSeconds, and neither the pod "
                "nor its events name a cause, or the operator is not permitted to read events."
            ),
            remedy=(
                'See "kubectl describe pod POD -n NAMESPACE", the node of the pod and its kubelet, and '
                "schedulerName in spec.podTemplate, spec.driver.podTemplate and spec.executor.podTemplate."
            ),
            after="Tidegate reads the events again after 15 seconds to 5 minutes.",
            page="guide/pods-that-do-not-start.md",
        ),
        Entry(
            Reason.LAUNCH_REFUSED,
            Fault.CLUSTER,
            (Place.APP, Place.UPGRADE, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            (
                "The API server refuses the pod (a quota, pod security, an admission policy, a ServiceAccount that "
                "does not exist, a pod template that makes no valid pod) or could not create it."
            ),
            remedy="Correct what the message names.",
            after="Tidegate retries after 5 seconds to 5 minutes.",
        ),
        Entry(
            Reason.NAMESPACE_TERMINATING,
            Fault.NONE,
            (Place.APP, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "The namespace is being deleted, and accepts no pods.",
        ),
        Entry(
            Reason.POD_NAME_TAKEN,
            Fault.CLUSTER,
            (Place.APP, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "A pod that does not belong to this resource (any more) has the name that Tidegate needs.",
            remedy=(
                "Delete that pod, or the object that creates it (its metadata.ownerReferences). An application can "
                "also be created under another name; it then starts without the state of this one."
            ),
            after="Tidegate retries after 5 seconds to 5 minutes.",
        ),
        Entry(
            Reason.ACCESS_NAME_TAKEN,
            Fault.CLUSTER,
            (Place.APP, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "A ServiceAccount, Role or RoleBinding tidegate-driver-<app> exists and is not Tidegate's.",
            remedy=(
                "Let those who use that object move to another one, then delete it: pods that still use it lose their "
                "access at once. Or set spec.serviceAccountName to a ServiceAccount of your own, which restarts the "
                "application."
            ),
            after="Tidegate retries after 5 seconds to 5 minutes.",
        ),
        Entry(
            Reason.DRIVER_NOT_GONE,
            Fault.CLUSTER,
            (Place.APP,),
            (
                "The node does not confirm that the old driver has ended, or finalizers of somebody's keep its pod. "
                "Until the pod is gone, no second one starts: two would write to one checkpoint."
            ),
            remedy=(
                "If the message names finalizers, see to the program that owns them. If the node hangs or is cut off, "
                'restart its machine or its network. If the machine of the node is off, run "kubectl taint nodes NODE '
                'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", which removes all pods of the node, and '
                'before the machine starts again "kubectl taint nodes NODE '
                'node.kubernetes.io/out-of-service-", which removes the taint. Never delete the driver pod with '
                "--force."
            ),
            after="Tidegate continues when the node answers again, or the pod is gone.",
        ),
        Entry(
            Reason.POD_NOT_GONE,
            Fault.CLUSTER,
            (Place.APP,),
            (
                "The node does not confirm that a pod has ended (an executor, a rehearsal, a repartition, or the pod "
                "that purges the storage), or finalizers of somebody's keep it."
            ),
            remedy=(
                "If the message names finalizers, see to the program that owns them. If the node hangs or is cut off, "
                'restart its machine or its network. If the machine of the node is off, run "kubectl taint nodes NODE '
                'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", which removes all pods of the node, and '
                'before the machine starts again "kubectl taint nodes NODE '
                'node.kubernetes.io/out-of-service-", which removes the taint.'
            ),
            after="Tidegate continues when the node answers again, or the pod is gone.",
        ),
    ),
)
