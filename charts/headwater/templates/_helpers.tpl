{{- define "headwater.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* Prefix of object names. A Service's name has at most 63 characters, and the longest suffix is "-operator-metrics". */}}
{{- define "headwater.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else if contains (include "headwater.name" .) .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "headwater.name" .) | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "headwater.operatorName" -}}
{{- include "headwater.fullname" . }}-operator
{{- end -}}

{{- define "headwater.serviceAccountName" -}}
{{- default (include "headwater.operatorName" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "headwater.secretName" -}}
{{- default (printf "%s-admin-token" (include "headwater.fullname" .)) .Values.adminToken.existingSecret -}}
{{- end -}}

{{- define "headwater.selectorLabels" -}}
app.kubernetes.io/name: {{ include "headwater.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "headwater.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ include "headwater.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .component | default "operator" }}
app.kubernetes.io/part-of: headwater
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "headwater.operatorImage" -}}
{{- $repository := printf "%s/%s" .Values.image.registry .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Call with (list . "sim" "engine-sim"): the engine image of one kind. */}}
{{- define "headwater.engineImage" -}}
{{- $root := index . 0 -}}
{{- $given := get $root.Values.engine.images (index . 1) -}}
{{- default (printf "%s/%s:%s" $root.Values.image.registry (index . 2) $root.Chart.AppVersion) $given -}}
{{- end -}}

{{/* A value that is null stands for "when all namespaces are watched". Call with (list . value). */}}
{{- define "headwater.orClusterWide" -}}
{{- $root := index . 0 -}}
{{- $value := index . 1 -}}
{{- if kindIs "invalid" $value -}}
{{- if not $root.Values.watchNamespaces -}}true{{- end -}}
{{- else if $value -}}true{{- end -}}
{{- end -}}

{{/* "namespace/release" of the Helm release that owns an object, or what else made it. */}}
{{- define "headwater.ownerOf" -}}
{{- $annotations := .metadata.annotations | default dict -}}
{{- $release := get $annotations "meta.helm.sh/release-name" -}}
{{- if $release -}}
{{- printf "%s/%s" (get $annotations "meta.helm.sh/release-namespace") $release -}}
{{- else -}}
no Helm release
{{- end -}}
{{- end -}}
