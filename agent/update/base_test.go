package update

import (
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"monopod/manifests/defaults"
)

const base = `
metadata:
  name: web-node1
  namespace: default
  uid: 0123456789abcdef0123456789abcdef
  labels: {app: web, tier: front}
  annotations:
    team: blue
    kubernetes.io/config.hash: 0123456789abcdef0123456789abcdef
    kubernetes.io/config.source: file
    kubernetes.io/config.seen: "2026-05-04T12:00:00.000000000Z"
spec:
  nodeName: node1
  hostname: web
  terminationGracePeriodSeconds: 20
  hostAliases: [{ip: 10.0.0.9, hostnames: [db]}]
  dnsPolicy: None
  dnsConfig: {nameservers: [10.0.0.10], searches: [corp.example], options: [{name: ndots, value: "2"}]}
  securityContext: {runAsUser: 1000, fsGroup: 2000, sysctls: [{name: net.ipv4.tcp_syncookies, value: "1"}]}
  tolerations: [{operator: Exists, effect: NoExecute}]
  volumes:
  - {name: data, hostPath: {path: /srv/data}}
  - {name: tmp, emptyDir: {}}
  - {name: info, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
  initContainers:
  - {name: setup, image: "setup:1", command: [setup]}
  - {name: mesh, image: "mesh:1", restartPolicy: Always, readinessProbe: {tcpSocket: {port: 15000}}}
  containers:
  - name: app
    image: web:1
    command: [/web]
    args: [--verbose]
    workingDir: /srv
    ports: [{name: http, containerPort: 80, hostPort: 8080}, {name: metrics, containerPort: 9090}]
    env:
    - {name: MODE, value: fast}
    - {name: PASSWORD, value: hunter2}
    - {name: TIER, valueFrom: {fieldRef: {fieldPath: "metadata.labels['tier']"}}}
    - {name: TEAM, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['team']"}}}
    - {name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
    resources: {limits: {cpu: "1", memory: 256Mi}, requests: {cpu: 500m, memory: 128Mi}}
    volumeMounts: [{name: data, mountPath: /data}, {name: info, mountPath: /info}]
    livenessProbe: {httpGet: {path: /live, port: 80, httpHeaders: [{name: Authorization, value: opensesame}]}}
    readinessProbe: {httpGet: {path: /ready, port: 80}}
    startupProbe: {exec: {command: [started]}}
    lifecycle:
      postStart: {exec: {command: [greet]}}
      preStop: {exec: {command: [bye]}}
    securityContext: {readOnlyRootFilesystem: true}
  - name: side
    image: side:1
    resources: {requests: {cpu: 100m}}
    resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]
    volumeMounts: [{name: tmp, mountPath: /tmp}]
  - {name: bare, image: "bare:1"}
`

var basePod = sync.OnceValues(func() (*v1.Pod, error) {
	p := &v1.Pod{}
	return p, yaml.UnmarshalStrict([]byte(base), p)
})

// pod returns a new copy of the base pod, as accepted, with edits made before it has
// its defaults.
func pod(t testing.TB, edits ...func(*v1.Pod)) *v1.Pod {
	t.Helper()
	first, err := basePod()
	if err != nil {
		t.Fatal(err)
	}
	p := first.DeepCopy()
	for _, edit := range edits {
		edit(p)
	}
	defaults.Pod(p)
	return p
}

// spec edits the spec, app, side and bare edit the containers of these names.
func spec(edit func(*v1.PodSpec)) func(*v1.Pod) { return func(p *v1.Pod) { edit(&p.Spec) } }
func app(edit func(*v1.Container)) func(*v1.Pod) {
	return func(p *v1.Pod) { edit(&p.Spec.Containers[0]) }
}
func side(edit func(*v1.Container)) func(*v1.Pod) {
	return func(p *v1.Pod) { edit(&p.Spec.Containers[1]) }
}
func bare(edit func(*v1.Container)) func(*v1.Pod) {
	return func(p *v1.Pod) { edit(&p.Spec.Containers[2]) }
}
func setup(edit func(*v1.Container)) func(*v1.Pod) {
	return func(p *v1.Pod) { edit(&p.Spec.InitContainers[0]) }
}
func mesh(edit func(*v1.Container)) func(*v1.Pod) {
	return func(p *v1.Pod) { edit(&p.Spec.InitContainers[1]) }
}
func security(edit func(*v1.SecurityContext)) func(*v1.Pod) {
	return app(func(c *v1.Container) { edit(c.SecurityContext) })
}
func podSecurity(edit func(*v1.PodSecurityContext)) func(*v1.Pod) {
	return spec(func(s *v1.PodSpec) { edit(s.SecurityContext) })
}
func annotate(key, value string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Annotations[key] = value }
}
func limit(name v1.ResourceName, q string) func(*v1.Container) {
	return func(c *v1.Container) { put(&c.Resources.Limits, name, q) }
}
func request(name v1.ResourceName, q string) func(*v1.Container) {
	return func(c *v1.Container) { put(&c.Resources.Requests, name, q) }
}
func put(l *v1.ResourceList, name v1.ResourceName, q string) {
	if *l == nil {
		*l = v1.ResourceList{}
	}
	(*l)[name] = resource.MustParse(q)
}
func both(edits ...func(*v1.Pod)) func(*v1.Pod) {
	return func(p *v1.Pod) {
		for _, edit := range edits {
			edit(p)
		}
	}
}
