{{/* Names and labels shared by all objects of the chart. Names are cut at 63 characters, the limit of a DNS label. */}}

{{- define "tidegate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Not repeated if the release is called like the chart: `helm install tidegate` gives a Deployment `tidegate`. */}}
{{- define "tidegate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "tidegate.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What a selector may use: never changes between versions of the chart, since a Deployment's selector is immutable. */}}
{{- define "tidegate.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tidegate.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* Of the Service, by which Prometheus finds it: Argo CD may write its Application's name into `instance` of every object. */}}
{{- define "tidegate.metricsLabel" -}}
tidegate.dev/metrics: {{ include "tidegate.fullname" . | quote }}
{{- end -}}

{{- define "tidegate.ownLabels" -}}
{{ include "tidegate.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: tidegate
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/*
Labels and annotations of an object of the chart: the object's own ("labels", "annotations"), over those that all have in
common (commonLabels, commonAnnotations), over the chart's. Merged, not written one after the other: YAML takes no name twice.
What selectors and Helm go by, the schema does not let the values name.
*/}}
{{- define "tidegate.metadata" -}}
labels:
  {{- merge dict (default dict .labels) (default dict .root.Values.commonLabels) (include "tidegate.ownLabels" .root | fromYaml) | toYaml | nindent 2 }}
{{- with merge dict (default dict .annotations) (default dict .root.Values.commonAnnotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Labels of a ClusterRole by which Kubernetes adds its rules to its own roles of these names. */}}
{{- define "tidegate.aggregateTo" -}}
{{- range . }}
rbac.authorization.k8s.io/aggregate-to-{{ . }}: "true"
{{- end }}
{{- end -}}

{{- define "tidegate.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tidegate.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* One image for both jobs: the operator itself, and the init container that brings the runtime into stock Spark images. */}}
{{- define "tidegate.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository $tag -}}
{{- end -}}
{{- end -}}

{{/*
A security context, as JSON. On OpenShift without users and groups: its SCC restricted-v2 gives each namespace numbers of its
own, and refuses a pod that has another one. Nulls are left out, too.
*/}}
{{- define "tidegate.securityContext" -}}
{{- $mode := toString .root.Values.openshift -}}
{{- $context := dict -}}
{{- range $name, $value := .context -}}
{{- if not (kindIs "invalid" $value) -}}{{- $_ := set $context $name $value -}}{{- end -}}
{{- end -}}
{{- if or (eq $mode "true") (and (eq $mode "auto") (.root.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}
{{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" -}}
{{- end -}}
{{- toJson $context -}}
{{- end -}}

{{/* Of this release alone: two releases in one namespace must not agree on one leader. */}}
{{- define "tidegate.leaseName" -}}
{{- printf "%s-operator" (include "tidegate.fullname" .) -}}
{{- end -}}

{{/* Likewise: two releases have nothing to do with each other's drivers. */}}
{{- define "tidegate.keyName" -}}
{{- printf "%s-agent-key" (include "tidegate.fullname" .) -}}
{{- end -}}

{{/* How far a binding of an admission policy reaches: as far as the operator; nothing if that is everywhere. */}}
{{- define "tidegate.watchedNamespaces" -}}
{{- with .Values.watchNamespaces -}}
matchResources:
  namespaceSelector:
    matchExpressions:
      - key: kubernetes.io/metadata.name
        operator: In
        values:
          {{- toYaml . | nindent 10 }}
{{- end -}}
{{- end -}}
