{{- define "counterseal.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- /* Labels of one process: a list of the context and the process's name. */ -}}
{{- define "counterseal.labels" -}}
app.kubernetes.io/name: counterseal
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "counterseal.metadata" -}}
{{- $context := index . 0 -}}
name: {{ include "counterseal.name" $context }}-{{ index . 1 }}
namespace: {{ $context.Release.Namespace }}
labels:
  {{- include "counterseal.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ $context.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ $context.Release.Service }}
{{- end -}}

{{- /* What every pod has. */ -}}
{{- define "counterseal.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
# A web process ends within 3 seconds of SIGTERM, a worker within 15.
terminationGracePeriodSeconds: 20
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "counterseal.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "counterseal.labels" . | nindent 8 }}
{{- end -}}

{{- /* What every container has. */ -}}
{{- define "counterseal.container" -}}
{{- with .Values.image }}
image: {{ if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
envFrom:
  - secretRef: {name: {{ .Values.existingSecret }}}
env:
  - {name: STATE, value: /var/lib/counterseal}
  {{- range $name, $value := .Values.config }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
volumeMounts:
  - {name: state, mountPath: /var/lib/counterseal}
  - {name: tmp, mountPath: /tmp}
{{- end -}}
