{{/* The operator's settings. Each name is a field of headwater_operator.settings; a test compares them. */}}
{{- define "headwater.operatorEnv" -}}
{{- $settings := dict
  "NAMESPACES" (join "," .Values.watchNamespaces)
  "DEFAULT_IMAGE_SIM" (include "headwater.engineImage" (list . "sim" "engine-sim"))
  "DEFAULT_IMAGE_VLLM_CPU" (include "headwater.engineImage" (list . "vllmCpu" "engine-cpu"))
  "DEFAULT_IMAGE_VLLM_CUDA" (include "headwater.engineImage" (list . "vllmCuda" "engine-cuda"))
  "ALLOWED_IMAGES" (join "," .Values.engine.allowedImages)
  "ALLOWED_ENGINE_ARGS" (join "," .Values.engine.allowedEngineArgs)
  "ALLOW_SIM" (toString .Values.engine.allowSim)
  "ENGINE_LOG_LEVEL" .Values.engine.logLevel
  "IMAGE_PULL_POLICY" .Values.engine.pullPolicy
  "ADMIN_TOKEN_FILE" "/etc/headwater/admin-token/token"
  "LEASE_NAME" (include "headwater.operatorName" .)
  "LOG_LEVEL" .Values.operator.logLevel
  "LOG_FORMAT" .Values.operator.logFormat
  "PROBE_INTERVAL_SECONDS" (toString .Values.operator.probeIntervalSeconds)
  "WORKERS" (toString .Values.operator.workers)
  "METRICS_PORT" "8080"
  "PROBE_PORT" "8081"
-}}
{{- range $name, $value := $settings -}}
- name: HEADWATER_OPERATOR_{{ $name }}
  value: {{ $value | quote }}
{{ end }}
{{- range $name, $path := dict "POD_NAME" "metadata.name" "POD_NAMESPACE" "metadata.namespace" "POD_UID" "metadata.uid" -}}
- name: HEADWATER_OPERATOR_{{ $name }}
  valueFrom:
    fieldRef:
      fieldPath: {{ $path }}
{{ end }}
{{- end -}}
