package manifests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// What a problem quotes is told in logs, events, metrics of lines and terminals: the
// author knows the rest.
func TestAProblemQuotesLittleOfAnyValue(t *testing.T) {
	huge := strings.Repeat("Ab/cd=", 4<<10)
	rows := map[string]string{
		"a label's key":            `metadata: {name: a, labels: {%q: b}}`,
		"a label's value":          `metadata: {name: a, labels: {b: %q}}`,
		"an annotation's key":      `metadata: {name: a, annotations: {%q: b}}`,
		"the name":                 `metadata: {name: %q}`,
		"the namespace":            `metadata: {name: a, namespace: %q}`,
		"the uid":                  `metadata: {name: a, uid: %q}`,
		"the order":                `metadata: {name: a, annotations: {monopod.start-after: %q}}`,
		"the order's time":         `metadata: {name: a, annotations: {monopod.start-after: b, monopod.start-after-timeout: %q}}`,
		"a back-off":               `metadata: {name: a, annotations: {monopod.backoff-max: %q}}`,
		"an address":               `spec: {hostAliases: [{ip: %q, hostnames: [%[1]q]}]}`,
		"an environment's pattern": `spec: {containers: [{name: c, image: i, env: [{name: A, valueFrom: {fieldRef: {fieldPath: %q}}}]}]}`,
		"a secret's name":          `spec: {imagePullSecrets: [{name: %q}]}`,
		"a probe's port":           `spec: {containers: [{name: c, image: i, livenessProbe: {httpGet: {port: %q, scheme: %[1]q}}}]}`,
		"an unknown field":         `metadata: {name: a, %q: b}`,
		"the kind":                 `kind: %q`,
		"the version":              `apiVersion: %q`,
		"a list's item":            `spec: {containers: [%q]}`,
		"a container's name":       `spec: {containers: [{name: %q, image: i}]}`,
		"a variable's name":        `spec: {containers: [{name: c, image: i, env: [{name: %q}]}]}`,
		"a variable twice":         `spec: {containers: [{name: c, image: i, volumeMounts: [{name: %[1]q, mountPath: %[1]q}, {name: %[1]q, mountPath: %[1]q}]}]}`,
		"a policy":                 `spec: {restartPolicy: %q}`,
		"a quantity":               `spec: {containers: [{name: c, image: i, resources: {limits: {cpu: %q}}}]}`,
		"a resource":               `spec: {containers: [{name: c, image: i, resources: {limits: {%q: 1}}}]}`,
		"a node selector's key":    `spec: {nodeSelector: {%q: b}}`,
		"a volume's name":          `spec: {volumes: [{name: %q, emptyDir: {}}]}`,
		"a path":                   `spec: {volumes: [{name: v, hostPath: {path: %q, type: %[1]q}}]}`,
		"a sysctl":                 `spec: {securityContext: {sysctls: [{name: %q, value: b}]}}`,
		"a runtime class":          `spec: {runtimeClassName: %q}`,
		"a port":                   `spec: {containers: [{name: c, image: i, ports: [{name: %q, containerPort: 1, protocol: %[1]q}]}]}`,
		"a host name":              `spec: {hostname: %q}`,
		"a name server":            `spec: {dnsConfig: {nameservers: [%q]}}`,
		"a scheduling rule's key":  `spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: %q, operator: %[1]q}]}]}}}}`,
		"a profile":                `spec: {securityContext: {seccompProfile: {type: %q}}}`,
		"a toleration":             `spec: {tolerations: [{key: %q, operator: %[1]q}]}`,
		"a number":                 `spec: {priority: %q}`,
		"a key of the whole":       `%q: b`,
		"an alias that means none": `spec: *%.20000s`,
	}
	for name, text := range rows {
		doc := fmt.Sprintf(text, huge)
		for _, line := range []string{"apiVersion: v1", "kind: Pod", "metadata: {name: a}", "spec: {containers: [{name: c, image: i}]}"} {
			if key, _, _ := strings.Cut(line, ":"); !strings.HasPrefix(text, key+":") {
				doc += "\n" + line
			}
		}
		_, problems := Decode("/m/a.yaml", []byte(doc), Options{NodeName: "n", NameSuffix: true})
		if len(problems) == 0 {
			t.Errorf("%s is no problem", name)
		}
		for _, p := range problems {
			whole, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			if len(whole) > 1500 || strings.Contains(string(whole), huge[:200]) {
				t.Errorf("%s: a problem of %d bytes: %.150s ... %s", name, len(whole), whole, whole[max(0, len(whole)-150):])
			}
		}
	}
}
