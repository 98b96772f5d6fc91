package validate_test

import (
	"strings"
	"testing"

	"monopod/manifests/documents"
)

// TestWarningsOfWhatCanOnlyFail: each row is what a container or a spec has more, on
// line 7 of the file; want is "~line:column field: message" as it begins.
func TestWarningsOfWhatCanOnlyFail(t *testing.T) {
	const head = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - {name: c, image: i,\n"
	const c = "spec.containers[0]."
	in := func(fields string, spec ...string) string {
		return head + "     " + fields + "}\n  " + strings.Join(spec, "\n  ") + "\n"
	}
	image := func(name string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: c\n    image: " + name + "\n"
	}
	const noImage = "~7:12 " + c + "image: no registry takes "
	ports := "ports: [{name: web, containerPort: 80}, {name: metrics, containerPort: 90}], "
	tests := []struct{ name, file, want string }{
		{"image with a blank", image("'My App:latest'"), noImage + `the name "My App:latest": it has a blank; a good one is [registry/]name[:tag], such as nginx:1.29`},
		{"image in upper case", image("reg.example.com/Team/App:V2"), noImage + `the name "reg.example.com/Team/App:V2": all behind the registry and before the tag is lower case: did you mean "reg.example.com/team/app:V2"?`},
		{"image with a scheme", image("https://reg.example.com/app:2"), noImage + `the name "https://reg.example.com/app:2": an image name has no scheme such as https://: did you mean "reg.example.com/app:2"?`},
		{"image with an empty tag", image("'app:'"), noImage + `the name "app:": the tag behind the colon is empty: did you mean "app"?`},
		{"image with two tags", image("reg:5000/app:1:2"), noImage + `the name "reg:5000/app:1:2": it has two tags`},
		{"image with half a digest", image("app@sha256:abcd"), noImage + `the name "app@sha256:abcd": behind the @ comes a digest, sha256: and 64 hex digits`},
		{"image id", image(strings.Repeat("0123456789abcdef", 4)), noImage + `the name "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ab...": this is the id of an image`},
		{"image with a variable", image("app:$TAG"), noImage + `the name "app:$TAG": variables are not expanded in it`},
		{"image with slashes to spare", image("reg.example.com//app"), noImage + `the name "reg.example.com//app": invalid reference format`},
		{"image of a volume", in("volumeMounts: []", "volumes: [{name: v, image: {reference: A/B}}]"), `~8:42 spec.volumes[0].image.reference: no registry takes the name "A/B"`},
		{"image of an init container", in("args: [x]", "initContainers: [{name: d, image: 'a b'}]"), "~8:37 spec.initContainers[0].image: no registry takes"},
		{"images that are well", in("args: [x]", "initContainers: [{name: d, image: 'R.example.com:5000/a_b/c--d:V2@sha256:"+strings.Repeat("0a", 32)+"'}, {name: e, image: localhost/x}]"), ""},

		{"probe of a port without a name", in("readinessProbe: {tcpSocket: {port: web}}"), `~7:41 ` + c + `readinessProbe.tcpSocket.port: the container has no port named "web": give the number, or name a port so; the probe can never be carried out`},
		{"probe of a port with another name", in(ports + "livenessProbe: {httpGet: {port: wbe}}"), `~7:115 ` + c + `livenessProbe.httpGet.port: the container has no port named "wbe": did you mean "web"? As it is, the probe can never be carried out`},
		{"start probe", in(ports + "startupProbe: {httpGet: {port: metric}}"), `~7:114 ` + c + `startupProbe.httpGet.port: the container has no port named "metric": did you mean "metrics"?`},
		{"hook of a port without a name", in("lifecycle: {postStart: {httpGet: {port: web}}, preStop: {httpGet: {port: web}}}"),
			`~7:46 ` + c + `lifecycle.postStart.httpGet.port: the container has no port named "web": give the number, or name a port so; the hook always fails` + "\n~7:79 " + c + "lifecycle.preStop.httpGet.port: "},
		{"probe of a sidecar", in(ports+"args: [x]", "initContainers: [{name: s, image: i, restartPolicy: Always, livenessProbe: {tcpSocket: {port: web}}}]"), `~8:97 spec.initContainers[0].livenessProbe.tcpSocket.port: the container has no port named "web"`},
		{"ports that are well", in(ports + "livenessProbe: {httpGet: {port: web}}, readinessProbe: {tcpSocket: {port: 5}}, startupProbe: {grpc: {port: 6}}"), ""},
		{"a hook that fails anyway", in("lifecycle: {preStop: {tcpSocket: {port: web}}}"), "~7:28 " + c + "lifecycle.preStop.tcpSocket: accepted, but"},

		{"host port of a sidecar", in("ports: [{containerPort: 80, hostPort: 80}]", "initContainers: [{name: s, image: i, restartPolicy: Always, ports: [{containerPort: 90, hostPort: 80, hostIP: 10.0.0.1}]}]"),
			`~7:44 ` + c + `ports[0].hostPort: TCP port 80 of the machine is that of spec.initContainers[0].ports[0] already: only one of the two can have it; give one of them another port`},
		{"host port of an address and of all", in("ports: [{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}, {containerPort: 90, hostPort: 80}]"), "~7:97 " + c + "ports[1].hostPort: TCP port 80 of the machine is that of " + c + "ports[0] already"},
		{"host ports of two addresses and protocols", in("ports: [{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}, {containerPort: 90, hostPort: 80, hostIP: 10.0.0.2}, {containerPort: 90, hostPort: 80, protocol: UDP}]"), ""},
		{"host port twice is an error", in("ports: [{containerPort: 80, hostPort: 80}, {containerPort: 90, hostPort: 80}]"), "7:79 " + c + "ports[1].hostPort: Duplicate value: 80"},
		{"host network", in("ports: [{containerPort: 80}]", "hostNetwork: true", "initContainers: [{name: s, image: i, restartPolicy: Always, ports: [{containerPort: 80}]}]"), "~7:30 " + c + "ports[0].containerPort: TCP port 80 of the machine is that of spec.initContainers[0].ports[0] already"},
		{"host port of an init container that ends", in("ports: [{containerPort: 80, hostPort: 80}]", "initContainers: [{name: s, image: i, ports: [{containerPort: 90, hostPort: 80}]}]"), ""},

		{"another node", in("args: [x]", "nodeName: edge7"), `~8:13 spec.nodeName: the pod runs here, on node "node1", and not on "edge7": a pod runs where its file is; remove nodeName, or move the file to "edge7"`},
		{"a name that is too long for the folder of logs", strings.Replace(in("args: [x]"), "name: a}", "name: "+strings.Repeat("a", 211)+"}", 1), `~3:18 metadata.name: name, namespace and uid have 256 bytes together, and the folder of the pod's logs, which they name, has room for 253: the pod never starts; shorten the name`},
		{"the longest name", strings.Replace(in("args: [x]"), "name: a}", "name: "+strings.Repeat("a", 208)+"}", 1), ""},
		{"a name that is too long anyway", strings.Replace(in("args: [x]"), "name: a}", "name: "+strings.Repeat("a", 254)+"}", 1), "3:18 metadata.name: Invalid value"},

		{"a relative path of the machine", in("args: [x]", "volumes: [{name: v, hostPath: {path: data/web}}]"), `~8:40 spec.volumes[0].hostPath.path: a path of the machine begins with /: no container that mounts the volume can start`},
		{"a path of the machine", in("args: [x]", "volumes: [{name: v, hostPath: {path: /data/web}}]"), ""},

		{"this node", in("args: [x]", "nodeName: Node1"), ""},

		{"empty command", in("command: ['', x]"), `~7:16 ` + c + `command[0]: the first word is the program to run, and is empty: the container cannot start`},
		{"zero byte in an argument", in(`args: [a, "b\0c"]`), `~7:16 ` + c + `args[1]: a text ends at a zero byte for the kernel: the container cannot start, or gets what stands before it`},
		{"zero byte in a value", in(`env: [{name: A, value: "\0"}]`), `~7:29 ` + c + `env[0].value: a text ends at a zero byte for the kernel: the container cannot start, or gets what stands before it`},
		{"empty command of a probe", in("livenessProbe: {exec: {command: ['']}}"), `~7:39 ` + c + `livenessProbe.exec.command[0]: the first word is the program to run, and is empty: the probe can never be carried out`},
		{"empty command of a hook", in("lifecycle: {postStart: {exec: {command: ['']}}}"), `~7:47 ` + c + `lifecycle.postStart.exec.command[0]: the first word is`},
		{"commands that are well", in("command: [], args: ['']"), ""},

		{"root that must not be", in("securityContext: {runAsNonRoot: true, runAsUser: 0}"), `~7:55 ` + c + `securityContext.runAsUser: 0 is root, and runAsNonRoot is true: the container is never created; give another user, or set runAsNonRoot to false`},
		{"root that must not be in all containers", in("args: [x]", "securityContext: {runAsNonRoot: true, runAsUser: 0}", "initContainers: [{name: s, image: i}]"), `~8:52 spec.securityContext.runAsUser: 0 is root`},
		{"root of one container", in("securityContext: {runAsUser: 0}", "securityContext: {runAsNonRoot: true, runAsUser: 5}"), `~7:35 ` + c + `securityContext.runAsUser: 0 is root`},
		{"root that may be", in("securityContext: {runAsNonRoot: false, runAsUser: 0}", "securityContext: {runAsNonRoot: true, runAsUser: 5}"), ""},

		{"path of a variable that is not there", in("env: [{name: PODS, value: x}], volumeMounts: [{name: v, mountPath: /v, subPathExpr: a/$(POD)}]", "volumes: [{name: v}]"),
			`~7:90 ` + c + `volumeMounts[0].subPathExpr: the container has no variable "POD" with a value: did you mean "PODS"? As it is, the container is never created`},
		{"path of a variable without a value", in("env: [{name: POD, value: x}, {name: POD}], volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(POD)}]", "volumes: [{name: v}]"),
			`~7:102 ` + c + `volumeMounts[0].subPathExpr: the container has no variable "POD" with a value; the container is never created`},
		{"paths that are well", in("env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(POD)/$$(X)}]", "volumes: [{name: v}]"), ""},

		{"memory in thousandths of a byte", in("resources: {limits: {memory: 128m}}"), `~7:35 ` + c + `resources.limits[memory]: 128m is less than a page of memory, 4096 bytes: nothing can run in it; m means thousandths, Mi means 1048576`},
		{"memory of a pod", in("args: [x]", "resources: {limits: {memory: 4000}}"), `~8:32 spec.resources.limits[memory]: 4k is less than a page of memory`},
		{"memory that is well", in("resources: {limits: {memory: 128974848000m}, requests: {memory: 0}}", "resources: {limits: {memory: 1Gi}}"), ""},
		{"memory without a limit", in("resources: {limits: {memory: 0}}"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := documents.Decode("/m/x.yaml", []byte(tt.file), node1)
			checkWords(t, problems, tt.want)
		})
	}
}
