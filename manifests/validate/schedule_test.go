package validate_test

import (
	"testing"

	"monopod/manifests/documents"
)

// TestValidateSchedule: each row is a spec with one thing wrong, or nothing; want
// is as in TestValidate.
func TestValidateSchedule(t *testing.T) {
	const (
		node   = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
		prefer = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
		pod    = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
		anti   = "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"
		spread = "spec.topologySpreadConstraints"
	)
	nodes := func(term string) string {
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + term + "]}}}"
	}
	label := func(r string) string { return nodes("{matchExpressions: [{" + r + "}]}") }
	fields := func(r string) string { return nodes("{matchFields: [{" + r + "}]}") }
	pods := func(term string) string {
		return "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{" + term + "}]}}"
	}
	constraint := func(c string) string { return "topologySpreadConstraints: [{" + c + "}]" }
	tests := []struct{ name, spec, want string }{
		{"node selector", "nodeSelector: {disk: ssd, example.com/x: ''}", ""},
		{"node selector's key", "nodeSelector: {a b: x}", `spec.nodeSelector[a b]: Invalid value: "a b"`},
		{"node selector's value", "nodeSelector: {a: 'x y'}", `spec.nodeSelector[a]: Invalid value: "x y"`},

		{"tolerations", "tolerations: [{operator: Exists}, {key: a, value: b}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 3}, {key: num, operator: Gt, value: '5'}]", ""},
		{"toleration of all by another operator", "tolerations: [{value: a}]", "spec.tolerations[0].operator: Invalid value: \"\": operator must be Exists when `key` is empty"},
		{"toleration's key", "tolerations: [{key: 'a b', operator: Exists}]", "spec.tolerations[0].key: Invalid value"},
		{"toleration's operator", "tolerations: [{key: a, operator: Is}]", `spec.tolerations[0].operator: Unsupported value: "Is"`},
		{"toleration's value", "tolerations: [{key: a, value: 'b c'}]", `spec.tolerations[0].value: Invalid value: "b c"`},
		{"toleration that needs no value", "tolerations: [{key: a, operator: Exists, value: b}]", "spec.tolerations[0].value: Invalid value: \"b\": value must be empty when `operator` is 'Exists'"},
		{"toleration of more than a word", "tolerations: [{key: a, operator: Lt, value: b}]", `spec.tolerations[0].value: Invalid value: "b": value must be an integer`},
		{"toleration's effect", "tolerations: [{key: a, effect: Never}]", `spec.tolerations[0].effect: Unsupported value: "Never"`},
		{"toleration for a time", "tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 3}]", "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set"},

		{"node affinity", label("key: a, operator: In, values: [x]}, {key: b, operator: Exists}, {key: c, operator: Gt, values: ['1']"), ""},
		{"node affinity to a node", fields("key: metadata.name, operator: NotIn, values: [node2]"), ""},
		{"node affinity that asks for nothing", nodes("{}"), ""},
		{"node affinity without a term", nodes(""), node + ": Required value: must have at least one node selector term"},
		{"node affinity's key", label("key: 'a b', operator: Exists"), node + "[0].matchExpressions[0].key: Invalid value"},
		{"node affinity's operator", label("key: a, operator: Is, values: [x]"), node + `[0].matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`},
		{"node affinity In nothing", label("key: a, operator: In"), node + "[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
		{"node affinity Exists with values", label("key: a, operator: DoesNotExist, values: [x]"), node + "[0].matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"},
		{"node affinity Gt two", label("key: a, operator: Gt, values: ['1', '2']"), node + "[0].matchExpressions[0].values: Required value: must be specified single value"},
		{"node affinity's value", label("key: a, operator: In, values: [x, 'y z']"), node + `[0].matchExpressions[0].values[1]: Invalid value: "y z"`},
		{"node affinity's field", fields("key: metadata.uid, operator: In, values: [x]"), node + `[0].matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key`},
		{"node affinity's field's operator", fields("key: metadata.name, operator: Exists"), node + `[0].matchFields[0].operator: Invalid value: "Exists": not a valid selector operator`},
		{"node affinity to two nodes", fields("key: metadata.name, operator: In, values: [a, b]"), node + "[0].matchFields[0].values: Required value: must be only one value"},
		{"node affinity to no node", fields("key: metadata.name, operator: In, values: [A_B]"), node + `[0].matchFields[0].values[0]: Invalid value: "A_B"`},
		{"preferred nodes", "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: a, operator: In}]}}, {weight: 101, preference: {}}]}}",
			prefer + "[0].weight: Invalid value: 0: must be in the range 1-100|" + prefer + "[0].preference.matchExpressions[0].values: Required value|" + prefer + "[1].weight: Invalid value: 101"},

		{"pod affinity", pods("topologyKey: kubernetes.io/hostname, namespaces: [a], labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}, namespaceSelector: {}, matchLabelKeys: [x], mismatchLabelKeys: [z]"), ""},
		{"pod affinity to nowhere", pods("labelSelector: {}"), pod + "[0].topologyKey: Required value: can not be empty"},
		{"pod affinity's key", pods("topologyKey: 'a b'"), pod + "[0].topologyKey: Invalid value"},
		{"pod affinity's namespace", pods("topologyKey: a, namespaces: [a, B.c]"), pod + `[0].namespaces[1]: Invalid value: "B.c"`},
		{"pod affinity's labels", pods("topologyKey: a, labelSelector: {matchLabels: {a: 'x y'}}"), pod + "[0].labelSelector.matchLabels"},
		{"pod affinity's expressions", pods("topologyKey: a, labelSelector: {matchExpressions: [{key: a, operator: In}, {key: a, operator: Exists, values: [b]}, {key: a, operator: Gt}]}"),
			pod + "[0].labelSelector.matchExpressions[0].values: Required value|" + pod + "[0].labelSelector.matchExpressions[1].values: Forbidden|" + pod + "[0].labelSelector.matchExpressions[2].operator: Invalid value"},
		{"pod affinity's namespaces by label", pods("topologyKey: a, namespaceSelector: {matchExpressions: [{key: a, operator: NotIn}]}"), pod + "[0].namespaceSelector.matchExpressions[0].values: Required value"},
		{"pod affinity by keys without a selector", pods("topologyKey: a, mismatchLabelKeys: [x]"), pod + "[0].mismatchLabelKeys: Forbidden: must not be specified when labelSelector is not set"},
		{"pod affinity by a key that is none", pods("topologyKey: a, labelSelector: {}, matchLabelKeys: ['a b']"), pod + "[0].matchLabelKeys[0]: Invalid value"},
		{"pod affinity by a key both ways", pods("topologyKey: a, labelSelector: {}, matchLabelKeys: [x], mismatchLabelKeys: [x]"), pod + `[0].matchLabelKeys[0]: Invalid value: "x": exists in both matchLabelKeys and mismatchLabelKeys`},
		{"preferred absence of pods", "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 200, podAffinityTerm: {}}]}}",
			anti + "[0].weight: Invalid value: 200|" + anti + "[0].podAffinityTerm.topologyKey: Required value"},

		{"spread", constraint("maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 2, nodeAffinityPolicy: Honor, nodeTaintsPolicy: Ignore, labelSelector: {matchLabels: {a: b}}, matchLabelKeys: [c]"), ""},
		{"spread by nothing", constraint("maxSkew: 0, whenUnsatisfiable: Perhaps"), spread + "[0].topologyKey: Required value: can not be empty|" + spread + "[0].maxSkew: Invalid value: 0: must be greater than zero|" + spread + `[0].whenUnsatisfiable: Unsupported value: "Perhaps"`},
		{"spread twice", "topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]",
			spread + `[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{a, ScheduleAnyway}"`},
		{"spread over few", constraint("maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, minDomains: 0"),
			spread + "[0].minDomains: Invalid value: 0: must be greater than zero|" + spread + "[0].minDomains: Invalid value: 0: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"},
		{"spread by policies", constraint("maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, nodeAffinityPolicy: X, nodeTaintsPolicy: Z"),
			spread + `[0].nodeAffinityPolicy: Unsupported value: "X"|` + spread + `[0].nodeTaintsPolicy: Unsupported value: "Z"`},
		{"spread by keys", constraint("maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: ['a b']"),
			spread + "[0].matchLabelKeys: Forbidden|" + spread + "[0].matchLabelKeys[0]: Invalid value"},
		{"spread by a selector", constraint("maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: a, operator: In}]}"), spread + "[0].labelSelector.matchExpressions[0].values: Required value"},

		{"priority", "priorityClassName: system-node-critical\n  priority: -5\n  preemptionPolicy: Never", ""},
		{"priority class", "priorityClassName: A_b", `spec.priorityClassName: Invalid value: "A_b"`},
		{"preemption", "preemptionPolicy: Often", `spec.preemptionPolicy: Unsupported value: "Often"`},
		{"readiness gates", "readinessGates: [{conditionType: example.com/up}, {conditionType: 'a b'}]", `spec.readinessGates[1].conditionType: Invalid value: "a b"`},
		{"overhead", "overhead: {cpu: 10m, memory: 1Mi, example.com/x: 2}", ""},
		{"overhead of what is not there", "overhead: {cpus: 1, memory: -1, example.com/x: 1.5}", `spec.overhead[cpus]: Invalid value: "cpus"|spec.overhead[memory]: Invalid value: "-1"|spec.overhead[example.com/x]: Invalid value: "1500m": must be an integer`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := documents.Decode("/m/x.yaml", []byte(podYAML("a", tt.spec)), node1)
			checkProblems(t, problems, tt.want)
		})
	}
}
