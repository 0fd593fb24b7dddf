{{/*
What the operator may do; docs/install.md explains each line. Bound in the whole cluster or in single namespaces, so the
rules exist once. No wildcards: tests/unit/chart compares this list with what the operator calls.
*/}}
{{- define "tidegate.operatorRules" -}}
# The applications themselves: read, set and take off the finalizer, write the status.
- apiGroups: [tidegate.dev]
  resources: [streamingapps]
  verbs: [get, list, watch, patch]
- apiGroups: [tidegate.dev]
  resources: [streamingapps/status]
  verbs: [patch]
# The snapshots: the same; made and removed by an application's schedule.
- apiGroups: [tidegate.dev]
  resources: [streamsnapshots]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [tidegate.dev]
  resources: [streamsnapshots/status]
  verbs: [patch]
# The control messages: read, say what came of each, and remove what ended a while ago; made for those from brokers that
# ask for a snapshot or a dump.
- apiGroups: [tidegate.dev]
  resources: [controlmessages]
  verbs: [get, list, watch, create, delete]
- apiGroups: [tidegate.dev]
  resources: [controlmessages/status]
  verbs: [patch]
# Driver pods, the pods that take and remove snapshots, and the pod that removes an application's storage. Patched are labels
# alone, of pods that lost theirs.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
# What a launch's driver needs to know its operator by, and to keep Spark's ports closed; of a pod with much configuration
# the long part. Written and removed: the operator reads no Secrets. No patch either, whose answer would show what is in one.
# Whether a Secret exists that an edit names, it knows by the dry run of a creation.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, delete]
# The access of each application's driver: ServiceAccount, Role and RoleBinding `tidegate-driver-<application>`. Read too,
# to leave alone what people made under that name; deleted if an earlier application of the name left it.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, create, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [get, create, delete]
# Read too, because a later version of the operator replaces a Role whose rules have changed.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles]
  verbs: [get, create, delete]
# What a namespace has room for: read where the autoscaler wants more executors than there are, or their pods are missing.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list]
# What LimitRanges demand of a pod that one of them has refused: Tidegate's own containers get it.
- apiGroups: [""]
  resources: [limitranges]
  verbs: [list]
# What an edit refers to, read by its name before anything is stopped for it: whether it exists, and of a ConfigMap whether it
# has the keys that are named. Never listed, never watched; where this is refused, the upgrade says what was not checked.
- apiGroups: [""]
  resources: [configmaps, persistentvolumeclaims]
  verbs: [get]
# What was decided, reported as Kubernetes Events. Their names are deterministic, so none is ever changed. Read, of one pod
# at a time by its uid, where a pod's containers have not started for a while: nothing else reports why. There is no watch.
- apiGroups: [""]
  resources: [events]
  verbs: [create, list]
{{- end -}}

{{/*
What the Role `tidegate-driver-<application>` grants. The operator holds the same, because Kubernetes lets nobody grant more than they
have; the other way round it, `escalate`, would let it grant anything.
*/}}
{{- define "tidegate.driverRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete, deletecollection]
{{- end -}}

{{/*
The operator's own key, from which it derives what it shows drivers; it makes the Secret at its first start. Not templated:
each rendering would have another key. As for the Lease, a create cannot be restricted to a name.
*/}}
{{- define "tidegate.keyRules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: ['{{ include "tidegate.keyName" . }}']
  verbs: [get]
{{- end -}}

{{/*
The Lease by which several operators agree on one that acts, in the operator's own namespace. Kubernetes cannot restrict
a create to a name, because the name is not in the request's address.
*/}}
{{- define "tidegate.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: ['{{ include "tidegate.leaseName" . }}']
  verbs: [get, patch]
{{- end -}}
