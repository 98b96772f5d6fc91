package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"monopod/manifests/documents"
	"monopod/manifests/documents/documenttest"
)

var (
	node1         = documenttest.Node1
	podYAML       = documenttest.PodYAML
	words         = documenttest.Words
	checkWords    = documenttest.CheckWords
	containerYAML = documenttest.ContainerYAML
	checkProblems = documenttest.CheckProblems
	numbered      = documenttest.Numbered
	allocated     = documenttest.Allocated
)

// TestValidate: each row is a pod with one thing wrong, or nothing.
func TestValidate(t *testing.T) {
	metadata := func(text string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {" + text + "}\nspec: {containers: [{name: c, image: i}]}\n"
	}
	spec := func(lines ...string) string { return podYAML("a", lines...) }
	tests := []struct {
		name, file string
		want       string // "field: message" as they begin, separated by "|"; "~" before warnings
	}{
		{"name", metadata("name: A"), "metadata.name: Invalid value: \"A-node1\": a lowercase RFC 1123 subdomain must consist of lower case"},
		{"name too long with suffix", metadata("name: " + strings.Repeat("a", 250)), "metadata.name: Invalid value"},
		{"namespace", metadata("name: a, namespace: A.b"), "metadata.namespace: Invalid value"},
		{"label value", metadata("name: a, labels: {k: 'a b'}"), "metadata.labels[k]: Invalid value: \"a b\""},
		{"label key", metadata("name: a, labels: {'a b': x}"), "metadata.labels[a b]: Invalid value"},
		{"annotations", metadata("name: a, annotations: {k: " + strings.Repeat("x", 256<<10) + "}"), "metadata.annotations: Too long"},
		{"annotation key", metadata("name: a, annotations: {'a b': x}"), "metadata.annotations[a b]: Invalid value"},

		{"container name missing", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{image: i}]}", "spec.containers[0].name: Required value"},
		{"container name", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: C, image: i}]}", "spec.containers[0].name: Invalid value: \"C\""},
		{"container names", spec("initContainers: [{name: c, image: i}]"), "spec.initContainers[0].name: Duplicate value: \"c\""},
		{"image blanks", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: 'i '}]}", "spec.containers[0].image: Invalid value: \"i \": must not have leading or trailing whitespace"},
		{"image syntax is for the pull", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: 'a b'}]}", "~spec.containers[0].image: no registry takes"},
		{"pull policy", containerYAML("imagePullPolicy: Often"), "spec.containers[0].imagePullPolicy: Unsupported value: \"Often\""},
		{"termination message policy", containerYAML("terminationMessagePolicy: X"), "spec.containers[0].terminationMessagePolicy: Unsupported value"},

		{"restart policy", spec("restartPolicy: always"), "spec.restartPolicy: Unsupported value: \"always\""},
		{"dns policy", spec("dnsPolicy: X"), "spec.dnsPolicy: Unsupported value"},
		{"dns none", spec("dnsPolicy: None"), "spec.dnsConfig.nameservers: Required value"},
		{"dns servers", spec("dnsConfig: {nameservers: [a, 1.1.1.1, 1.1.1.1, '::1']}"), "spec.dnsConfig.nameservers: Too many|spec.dnsConfig.nameservers[0]: Invalid value"},
		{"dns searches", spec("dnsConfig: {searches: [a_b.c, ., 'a b']}"), "spec.dnsConfig.searches[2]: Invalid value"},
		{"dns option", spec("dnsConfig: {options: [{value: '1'}]}"), "spec.dnsConfig.options[0].name: Required value"},
		{"hostname", spec("hostname: a.b"), "spec.hostname: Invalid value"},
		{"subdomain", spec("subdomain: A"), "spec.subdomain: Invalid value"},
		{"hostname override", spec("hostNetwork: true", "hostnameOverride: a.b"), "spec.hostnameOverride: Forbidden"},
		{"host alias", spec("hostAliases: [{ip: x, hostnames: [A_]}]"), "spec.hostAliases[0].ip: Invalid value|spec.hostAliases[0].hostnames[0]: Invalid value"},
		{"deadline", spec("activeDeadlineSeconds: 0"), "spec.activeDeadlineSeconds: Invalid value: 0"},
		{"windows", spec("os: {name: windows}"), "~spec.os.name: this machine runs linux: the pod fails at once"},
		{"another system", spec("os: {name: plan9}"), "spec.os.name: Unsupported value: \"plan9\""},
		{"gates", spec("schedulingGates: [{name: a}]"), "spec.schedulingGates: Forbidden"},
		{"ephemeral containers", spec("ephemeralContainers: [{name: e, image: i}]"), "spec.ephemeralContainers: Forbidden: cannot be set on create"},

		{"port missing", containerYAML("ports: [{name: web}]"), "spec.containers[0].ports[0].containerPort: Required value"},
		{"port range", containerYAML("ports: [{containerPort: 70000}]"), "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535"},
		{"host port range", containerYAML("ports: [{containerPort: 1, hostPort: -1}]"), "spec.containers[0].ports[0].hostPort: Invalid value"},
		{"protocol", containerYAML("ports: [{containerPort: 1, protocol: tcp}]"), "spec.containers[0].ports[0].protocol: Unsupported value"},
		{"port name", containerYAML("ports: [{containerPort: 1, name: '1'}]"), "spec.containers[0].ports[0].name: Invalid value"},
		{"port names", containerYAML("ports: [{containerPort: 1, name: a}, {containerPort: 2, name: a}]"), "spec.containers[0].ports[1].name: Duplicate value"},
		{"host ip", containerYAML("ports: [{containerPort: 1, hostIP: x}]"), "spec.containers[0].ports[0].hostIP: Invalid value"},
		{"host ports", containerYAML("ports: [{containerPort: 1, hostPort: 9}, {containerPort: 2, hostPort: 9}, {containerPort: 2, hostPort: 9, protocol: UDP}]"), "spec.containers[0].ports[1].hostPort: Duplicate value: 9"},
		{"host network port", containerYAML("ports: [{containerPort: 1, hostPort: 9}]", "hostNetwork: true"), "spec.containers[0].ports[0].hostPort: Invalid value: 9: must match `containerPort`"},

		{"env name", containerYAML("env: [{name: 'a=b'}]"), "spec.containers[0].env[0].name: Invalid value"},
		{"env name missing", containerYAML("env: [{value: x}]"), "spec.containers[0].env[0].name: Required value"},
		{"env both", containerYAML("env: [{name: a, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"), "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"},
		{"env none", containerYAML("env: [{name: a, valueFrom: {}}]"), "spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of"},
		{"env field", containerYAML("env: [{name: a, valueFrom: {fieldRef: {fieldPath: spec.x}}}]"), "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value"},
		{"env label", containerYAML("env: [{name: a, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['x/y']\"}}}]"), ""},
		{"env label key", containerYAML("env: [{name: a, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['x y']\"}}}]"), "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value"},
		{"env resource", containerYAML("env: [{name: a, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}]"), ""},
		{"env resource name", containerYAML("env: [{name: a, valueFrom: {resourceFieldRef: {resource: cpu}}}]"), "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Unsupported value"},
		{"env divisor", containerYAML("env: [{name: a, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1Gi}}}]"), "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Unsupported value"},
		{"env config map", containerYAML("env: [{name: a, valueFrom: {configMapKeyRef: {name: m, key: k, optional: true}}}]"), ""},
		{"env config map without name and key", containerYAML("env: [{name: a, valueFrom: {configMapKeyRef: {name: ''}}}]"), "spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Required value|spec.containers[0].env[0].valueFrom.configMapKeyRef.name: Required value"},
		{"env config map of a wrong name and key", containerYAML("env: [{name: a, valueFrom: {configMapKeyRef: {name: M, key: a/b}}}]"), "spec.containers[0].env[0].valueFrom.configMapKeyRef.name: Invalid value: \"M\"|spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Invalid value: \"a/b\""},
		{"env file", containerYAML("env: [{name: a, valueFrom: {fileKeyRef: {volumeName: v, path: d/x.env, key: K, optional: true}}}]", "volumes: [{name: v, emptyDir: {}}]"), ""},
		{"env file of a volume without a source", containerYAML("env: [{name: a, valueFrom: {fileKeyRef: {volumeName: v, path: x, key: K}}}]", "volumes: [{name: v}]"), ""},
		{"env file without anything", containerYAML("env: [{name: a, valueFrom: {fileKeyRef: {}}}]"), "spec.containers[0].env[0].valueFrom.fileKeyRef.key: Required value|spec.containers[0].env[0].valueFrom.fileKeyRef.path: Required value|spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Required value"},
		{"env file of no volume", containerYAML("env: [{name: a, valueFrom: {fileKeyRef: {volumeName: v, path: /x, key: 'a=b'}}}]"), "spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: \"v\"|spec.containers[0].env[0].valueFrom.fileKeyRef.path: Invalid value: \"/x\": must be a relative path|spec.containers[0].env[0].valueFrom.fileKeyRef.key: Invalid value"},
		{"env file of a hostPath", containerYAML("env: [{name: a, valueFrom: {fileKeyRef: {volumeName: v, path: a/../x, key: K}}}]", "volumes: [{name: v, hostPath: {path: /x}}]"), "spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Invalid value: \"v\": referenced volume must be of type emptyDir|spec.containers[0].env[0].valueFrom.fileKeyRef.path: Invalid value: \"a/../x\": must not contain '..'"},
		{"env secret", containerYAML("env: [{name: a, valueFrom: {secretKeyRef: {name: m, key: k}}}]"), ""},
		{"env secret without key", containerYAML("env: [{name: a, valueFrom: {secretKeyRef: {name: m}}}]"), "spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value"},
		{"envFrom", containerYAML("envFrom: [{configMapRef: {name: m}}, {secretRef: {name: s}}, {}, {configMapRef: {}, prefix: 'a='}]"), "spec.containers[0].envFrom[2]: Invalid value|spec.containers[0].envFrom[3].configMapRef.name: Required value|spec.containers[0].envFrom[3].prefix: Invalid value"},

		{"volume names", spec("volumes: [{name: v}, {name: v}, {}]"), "spec.volumes[1].name: Duplicate value|spec.volumes[2].name: Required value"},
		{"two sources", spec("volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}]"), "spec.volumes[0].emptyDir: Forbidden: may not specify more than 1 volume type"},
		{"memory medium", spec("volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Mi}}, {name: h, emptyDir: {medium: HugePages-2Mi}}]"), ""},
		{"medium", spec("volumes: [{name: v, emptyDir: {medium: Tape}}]"), "spec.volumes[0].emptyDir.medium: Unsupported value"},
		{"size limit", spec("volumes: [{name: v, emptyDir: {sizeLimit: -1}}]"), "spec.volumes[0].emptyDir.sizeLimit: Forbidden"},
		{"host path missing", spec("volumes: [{name: v, hostPath: {type: Nope}}]"), "spec.volumes[0].hostPath.path: Required value|spec.volumes[0].hostPath.type: Unsupported value"},
		{"host path climbs", spec("volumes: [{name: v, hostPath: {path: /a/../b}}]"), "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"},
		{"config map volume", spec("volumes: [{name: v, configMap: {name: m}}]"), ""},
		{"config map volume with wrong items", spec("volumes: [{name: v, configMap: {defaultMode: 512, items: [{}, {key: k, path: ../a, mode: -1}]}}]"), "spec.volumes[0].configMap.name: Required value|spec.volumes[0].configMap.defaultMode: Invalid value|spec.volumes[0].configMap.items[0].key: Required value|spec.volumes[0].configMap.items[0].path: Required value|spec.volumes[0].configMap.items[1].path: Invalid value|spec.volumes[0].configMap.items[1].mode: Invalid value"},
		{"secret volume", spec("volumes: [{name: v, secret: {secretName: m}}]"), ""},
		{"secret volume without a name", spec("volumes: [{name: v, secret: {items: [{key: k, path: p}]}}]"), "spec.volumes[0].secret.secretName: Required value"},
		{"projected objects", spec("volumes: [{name: v, projected: {sources: [{configMap: {items: [{key: k, path: p}]}}, {secret: {name: s, items: [{key: k, path: p}]}}]}}]"), "spec.volumes[0].projected: Invalid value: \"p\": conflicting duplicate paths|spec.volumes[0].projected.sources[0].configMap.name: Required value"},
		{"csi volume", spec("volumes: [{name: v, csi: {driver: m}}]"), "spec.volumes[0].csi: static pods may not reference csidrivers"},
		{"image volume", spec("volumes: [{name: v, image: {reference: m}}]"), ""},
		{"image volume of nothing", spec("volumes: [{name: v, image: {pullPolicy: Often}}]"), "spec.volumes[0].image.reference: Required value|spec.volumes[0].image.pullPolicy: Unsupported value: \"Often\""},
		{"downward volume", spec("volumes: [{name: v, downwardAPI: {items: [{path: a/b, fieldRef: {fieldPath: metadata.labels}}, {path: c, fieldRef: {fieldPath: \"metadata.annotations['k']\"}}, {path: m, mode: 256, resourceFieldRef: {containerName: c, resource: limits.memory, divisor: 1Mi}}]}}]"), ""},
		{"downward fields", spec("volumes: [{name: v, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: status.podIP}}, {path: b}, {path: c, fieldRef: {fieldPath: metadata.name}, resourceFieldRef: {containerName: c, resource: limits.cpu}}, {path: d, resourceFieldRef: {resource: limits.cpu}}, {path: e, resourceFieldRef: {containerName: x, resource: limits.cpu}}]}}]"),
			"spec.volumes[0].downwardAPI.items[0].fieldRef.fieldPath: Unsupported value: \"status.podIP\"|spec.volumes[0].downwardAPI.items[1]: Required value: one of fieldRef and resourceFieldRef is required|spec.volumes[0].downwardAPI.items[2]: Invalid value: \"resource\": fieldRef and resourceFieldRef can not|spec.volumes[0].downwardAPI.items[3].resourceFieldRef.containerName: Required value|spec.volumes[0].downwardAPI.items[4].resourceFieldRef.containerName: Not found: \"x\""},
		{"downward paths", spec("volumes: [{name: v, downwardAPI: {items: [{path: /a, fieldRef: {fieldPath: metadata.name}}, {path: a/../../b, fieldRef: {fieldPath: metadata.name}}, {path: ..data, fieldRef: {fieldPath: metadata.name}}, {path: .., fieldRef: {fieldPath: metadata.name}}, {fieldRef: {fieldPath: metadata.name}}]}}]"),
			"spec.volumes[0].downwardAPI.items[0].path: Invalid value: \"/a\": must be a relative path|spec.volumes[0].downwardAPI.items[1].path: Invalid value: \"a/../../b\": must not contain '..'|spec.volumes[0].downwardAPI.items[2].path: Invalid value: \"..data\": must not start with '..'|spec.volumes[0].downwardAPI.items[3].path: Invalid value: \"..\": must not contain '..'|spec.volumes[0].downwardAPI.items[4].path: Required value"},
		{"downward modes", spec("volumes: [{name: v, downwardAPI: {defaultMode: 512, items: [{path: a, mode: -1, fieldRef: {fieldPath: metadata.name}}]}}]"),
			"spec.volumes[0].downwardAPI.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal)|spec.volumes[0].downwardAPI.items[0].mode: Invalid value: -1"},
		{"projected volume", spec("volumes: [{name: v, projected: {sources: [{downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}, {downwardAPI: {}}]}}]"), ""},
		{"projected sources", spec("volumes: [{name: v, projected: {defaultMode: 512, sources: [{serviceAccountToken: {path: t}}, {clusterTrustBundle: {path: t}}, {podCertificate: {}}, {configMap: {name: m}}, {secret: {name: m}}, {}, {downwardAPI: {}, secret: {name: m}}]}}]"),
			"spec.volumes[0].projected.defaultMode: Invalid value: 512|spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set|spec.volumes[0].projected.sources[1].clusterTrustBundle: static pods may not reference clustertrustbundles|spec.volumes[0].projected.sources[2].podCertificate: static pods may not reference podcertificates|spec.volumes[0].projected.sources[5]: unknown source for projected volume \"v\"|spec.volumes[0].projected.sources[6].downwardAPI: Forbidden: may not specify more than 1 volume type"},
		{"projected paths", spec("volumes: [{name: v, projected: {sources: [{downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}, {downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.uid}}]}}]}}]"), "spec.volumes[0].projected: Invalid value: \"a\": conflicting duplicate paths"},

		{"mount of nothing", containerYAML("volumeMounts: [{name: v, mountPath: /x}]"), "spec.containers[0].volumeMounts[0].name: Not found: \"v\""},
		{"mount paths", containerYAML("volumeMounts: [{name: v, mountPath: /x}, {name: v, mountPath: /x}, {name: v}]", "volumes: [{name: v}]"), "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/x\": must be unique|spec.containers[0].volumeMounts[2].mountPath: Required value"},
		{"mount paths that climb", containerYAML("terminationMessagePath: /dev/../log, volumeMounts: [{name: v, mountPath: /x/../y}, {name: v, mountPath: /x..y}]", "volumes: [{name: v}]"),
			"spec.containers[0].terminationMessagePath: Invalid value: \"/dev/../log\": must not contain '..'|spec.containers[0].volumeMounts[0].mountPath: Invalid value: \"/x/../y\": must not contain '..'"},
		{"sub paths", containerYAML("volumeMounts: [{name: v, mountPath: /x, subPath: /a}, {name: v, mountPath: /y, subPath: a/..}, {name: v, mountPath: /z, subPath: a, subPathExpr: b}]", "volumes: [{name: v}]"),
			"spec.containers[0].volumeMounts[0].subPath: Invalid value: \"/a\": must be a relative path|spec.containers[0].volumeMounts[1].subPath: Invalid value: \"a/..\": must not contain '..'|spec.containers[0].volumeMounts[2].subPathExpr: Invalid value"},
		{"bidirectional", containerYAML("volumeMounts: [{name: v, mountPath: /x, mountPropagation: Bidirectional}]", "volumes: [{name: v}]"), "spec.containers[0].volumeMounts[0].mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers"},
		{"bidirectional, privileged", containerYAML("securityContext: {privileged: true}, volumeMounts: [{name: v, mountPath: /x, mountPropagation: Bidirectional}]", "volumes: [{name: v}]"), ""},
		{"recursive read-only", containerYAML("volumeMounts: [{name: v, mountPath: /x, recursiveReadOnly: Enabled}]", "volumes: [{name: v}]"), "spec.containers[0].volumeMounts[0].recursiveReadOnly: Forbidden: may only be specified when readOnly is true"},
		{"devices", containerYAML("volumeDevices: [{name: v, devicePath: /dev/x}]"), "spec.containers[0].volumeDevices[0]: no volume here is a device"},

		{"request over limit", containerYAML("resources: {limits: {cpu: 1}, requests: {cpu: 2}}"), "spec.containers[0].resources.requests[cpu]: Invalid value: \"2\": must be less than or equal to cpu limit of 1"},
		{"resource name", containerYAML("resources: {limits: {gpu: 1}}"), "spec.containers[0].resources.limits[gpu]: Invalid value"},
		{"extended resource", containerYAML("resources: {requests: {example.com/gpu: 1}}"), "spec.containers[0].resources.requests[example.com/gpu]: Required value: Limit must be set"},
		{"extended resource, half", containerYAML("resources: {limits: {example.com/gpu: 1.5}, requests: {example.com/gpu: 1}}"), "spec.containers[0].resources.limits[example.com/gpu]: Invalid value: \"1500m\": must be an integer|spec.containers[0].resources.requests[example.com/gpu]: Invalid value: \"1\": must be equal"},
		{"huge pages", containerYAML("resources: {limits: {hugepages-2Mi: 3Mi, cpu: 1}}"), "spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value"},
		{"huge pages alone", containerYAML("resources: {limits: {hugepages-2Mi: 4Mi}}"), "spec.containers[0].resources: Forbidden: HugePages require cpu or memory"},
		{"negative", containerYAML("resources: {requests: {cpu: -1}}"), "spec.containers[0].resources.requests[cpu]: Invalid value"},
		{"pod level below containers", containerYAML("resources: {requests: {cpu: 2}}", "resources: {requests: {cpu: 1}}"), "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container requests of 2"},
		{"pod level limit below container's", containerYAML("resources: {limits: {cpu: 2}, requests: {cpu: 1}}", "resources: {limits: {cpu: 1}}"), "spec.containers[0].resources.limits[cpu]: Invalid value: \"2\": must be less than or equal to pod limits of 1"},
		{"claims", containerYAML("resources: {claims: [{name: x}]}"), "spec.containers[0].resources.claims: Forbidden: static pods may not reference resourceclaims"},

		{"probe without handler", containerYAML("livenessProbe: {periodSeconds: 3}"), "spec.containers[0].livenessProbe: Required value: must specify a handler type"},
		{"probe with two handlers", containerYAML("livenessProbe: {exec: {command: [a]}, tcpSocket: {port: 1}}"), "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"},
		{"probe numbers", containerYAML("livenessProbe: {exec: {}, successThreshold: 2, timeoutSeconds: -1, terminationGracePeriodSeconds: 0}"),
			"spec.containers[0].livenessProbe.exec.command: Required value|spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1|spec.containers[0].livenessProbe.timeoutSeconds: Invalid value: -1|spec.containers[0].livenessProbe.terminationGracePeriodSeconds: Invalid value"},
		{"readiness grace", containerYAML("readinessProbe: {tcpSocket: {port: 0}, terminationGracePeriodSeconds: 3}"), "spec.containers[0].readinessProbe.tcpSocket.port: Invalid value: 0|spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value"},
		{"http handler", containerYAML("startupProbe: {httpGet: {port: '-a', scheme: FTP, httpHeaders: [{name: 'a b', value: x}]}}"),
			"spec.containers[0].startupProbe.httpGet.port: Invalid value|spec.containers[0].startupProbe.httpGet.scheme: Unsupported value|spec.containers[0].startupProbe.httpGet.httpHeaders[0].name: Invalid value"},
		{"hooks", containerYAML("lifecycle: {postStart: {}, preStop: {sleep: {seconds: 31}}}"),
			"spec.containers[0].lifecycle.postStart: Required value|spec.containers[0].lifecycle.preStop.sleep.seconds: Invalid value: 31"},
		{"a hook that cannot be run", containerYAML("lifecycle: {preStop: {tcpSocket: {port: 80}}}"), "~spec.containers[0].lifecycle.preStop.tcpSocket: accepted, but"},
		{"stop signal", containerYAML("lifecycle: {stopSignal: SIGINT}"), "spec.containers[0].lifecycle.stopSignal: Forbidden"},

		{"init container with a probe", spec("initContainers: [{name: i, image: i, livenessProbe: {exec: {command: [a]}}, lifecycle: {}}]"),
			"spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always|spec.initContainers[0].lifecycle: Forbidden"},
		{"sidecar with a probe", spec("initContainers: [{name: i, image: i, restartPolicy: Always, livenessProbe: {exec: {command: [a]}}}]"), ""},
		{"container restart policy", containerYAML("restartPolicy: Sometimes"), "spec.containers[0].restartPolicy: Unsupported value"},
		{"restart rules", containerYAML("restartPolicyRules: [{action: Dance}]"), "spec.containers[0].restartPolicy: Required value|spec.containers[0].restartPolicyRules[0].exitCodes: Required value|spec.containers[0].restartPolicyRules[0].action: Unsupported value"},

		{"user id", containerYAML("securityContext: {runAsUser: -1, runAsGroup: 2147483648}"), "spec.containers[0].securityContext.runAsUser: Invalid value: -1|spec.containers[0].securityContext.runAsGroup: Invalid value"},
		{"pod ids", spec("securityContext: {runAsUser: -1, fsGroup: -1, supplementalGroups: [-1]}"), "spec.securityContext.runAsUser: Invalid value|spec.securityContext.fsGroup: Invalid value|spec.securityContext.supplementalGroups[0]: Invalid value"},
		{"escalation", containerYAML("securityContext: {privileged: true, allowPrivilegeEscalation: false, capabilities: {add: [CAP_SYS_ADMIN]}}"), "spec.containers[0].securityContext.allowPrivilegeEscalation: Invalid value: false: cannot be false when `privileged`|spec.containers[0].securityContext.allowPrivilegeEscalation: Invalid value"},
		{"proc mount", containerYAML("securityContext: {procMount: Unmasked}"), "spec.containers[0].securityContext.procMount: Invalid value: \"Unmasked\": `hostUsers` must be false"},
		{"seccomp", spec("securityContext: {seccompProfile: {type: Localhost}}"), "spec.securityContext.seccompProfile.localhostProfile: Required value"},
		{"seccomp climbs", containerYAML("securityContext: {seccompProfile: {type: Localhost, localhostProfile: ../x}}"), "spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value"},
		{"seccomp and a file", spec("securityContext: {seccompProfile: {type: RuntimeDefault, localhostProfile: x}}"), "spec.securityContext.seccompProfile.localhostProfile: Invalid value: \"x\": can only be set"},
		{"apparmor", containerYAML("securityContext: {appArmorProfile: {type: Localhost, localhostProfile: ' x'}}"), "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Invalid value: \" x\": must not be padded"},
		{"apparmor annotation", metadata("name: a, annotations: {container.apparmor.security.beta.kubernetes.io/nope: unconfined}"), "metadata.annotations[container.apparmor.security.beta.kubernetes.io/nope]: Invalid value"},
		{"sysctls", spec("hostNetwork: true", "securityContext: {sysctls: [{name: net.a, value: x}, {name: kernel/shm_x, value: z}, {name: kernel/shm_x, value: z}, {name: A, value: x}]}"),
			"spec.securityContext.sysctls[0].name: Forbidden|spec.securityContext.sysctls[2].name: Duplicate value|spec.securityContext.sysctls[3].name: Invalid value"},
		{"share and host pid", spec("hostPID: true", "shareProcessNamespace: true"), "spec.shareProcessNamespace: Forbidden"},
		{"host users", spec("hostPID: true", "hostUsers: false"), "spec.hostUsers: Forbidden: when `hostUsers` is false, `hostPID` may not be true"},

		{"one annotation under very many names", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {x: " + strings.Repeat("a", 255<<10) + "}}\nspec: {volumes: [{name: v, downwardAPI: {items: [" +
			strings.Join(files(300), ", ") + "]}}], containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]}",
			`spec.volumes[0]: the files of the pod's volumes would take 75 MiB, 75 MiB of them in volume "v", and 64 MiB are made for a pod at most: show fewer keys, or each under fewer names`},
		{"service account", spec("serviceAccountName: x", "serviceAccount: z"), "spec.serviceAccountName: static pods may not reference serviceaccounts|spec.serviceAccount: static pods may not reference serviceaccounts"},
		{"resource claims", spec("resourceClaims: [{name: x}]"), "spec.resourceClaims: static pods may not reference resourceclaims"},
		{"runtime class", spec("runtimeClassName: x"), `spec.runtimeClassName: runtime class "x" is not configured on this node`},
		{"pull secrets", spec("imagePullSecrets: [{name: ''}, {name: x}]"), ""},
		{"a pull secret of a wrong name", spec("imagePullSecrets: [{name: X}]"), "spec.imagePullSecrets[0].name: Invalid value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := documents.Decode("/m/x.yaml", []byte(tt.file), node1)
			checkProblems(t, problems, tt.want)
		})
	}
}

// files are n files of a volume that show the pod's annotations.
func files(n int) (all []string) {
	for k := range n {
		all = append(all, fmt.Sprintf("{path: f%d, fieldRef: {fieldPath: metadata.annotations}}", k))
	}
	return all
}

// TestValidateIncomplete: a spec of which hardly anything was read is judged
// without a fall.
func TestValidateIncomplete(t *testing.T) {
	for _, spec := range []string{"3", "[]", "null", "{containers: 3}", "{containers: [3]}", "{containers: [null], volumes: [null], initContainers: [null]}",
		"{containers: [{name: c, image: i, lifecycle: {preStop: {sleep: {seconds: x}}}}], terminationGracePeriodSeconds: x}"} {
		pods, problems := documents.Decode("/m/x.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: "+spec+"\n"), node1)
		if len(pods) != 0 || len(problems) == 0 {
			t.Errorf("%s: %v %v", spec, pods, problems)
		}
	}
}
