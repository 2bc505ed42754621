{{/* What the operator does in a namespace with pools, verb by verb. No Secrets, no finalizers, no spec of a pool. */}}
{{- define "headwater.poolRules" -}}
- apiGroups: [headwater.dev]
  resources: [inferencepools]
  verbs: [get, list, watch]
- apiGroups: [headwater.dev]
  resources: [inferencepools/status, replicagroups/status]
  verbs: [patch]
- apiGroups: [headwater.dev]
  resources: [replicagroups]
  verbs: [get, list, watch, create, patch, delete]
# Pods go with their group, by the garbage collector.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch]
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{- define "headwater.nodeRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
{{- end -}}

{{- define "headwater.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "headwater.serviceAccountName" . }}
    namespace: {{ .Release.Namespace }}
{{- end -}}
