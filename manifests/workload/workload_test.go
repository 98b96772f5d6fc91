package workload_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"monopod/manifests"
	"monopod/manifests/annotations"
	"monopod/manifests/documents"
	"monopod/manifests/documents/documenttest"
)

var (
	node1        = documenttest.Node1
	words        = documenttest.Words
	podNames     = documenttest.PodNames
	checkWords   = documenttest.CheckWords
	workloadYAML = documenttest.WorkloadYAML
)

func TestWorkloads(t *testing.T) {
	const unserved = "is skipped: nothing here serves it"
	for _, tt := range []struct {
		name, file, pods, problems string
	}{
		{"deployment", workloadYAML("Deployment", ""), "default/web-node1", ""},
		{"daemon set", workloadYAML("DaemonSet", "updateStrategy: {type: OnDelete}"), "default/web-node1", ""},
		{"replica set", workloadYAML("ReplicaSet", "replicas: 1"), "default/web-node1", ""},
		{"stateful set", workloadYAML("StatefulSet", "serviceName: web"), "default/web-0-node1", ""},
		{"stateful set that counts from 5", workloadYAML("StatefulSet", "ordinals: {start: 5}"), "default/web-5-node1", ""},
		{"job", workloadYAML("Job", "completions: 1", "restartPolicy: Never"), "default/web-node1", ""},
		{"in a list", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: web}\n  spec:\n    selector: {matchLabels: {a: b}}\n" +
			"    template:\n      metadata: {labels: {a: b}}\n      spec: {containers: [{name: c}]}\n", "", "11:27 items[0].spec.template.spec.containers[0].image: Required value"},
		{"a field of the template that does not exist", workloadYAML("Deployment", "", "hostNetwrk: true"), "",
			`9:7 spec.template.spec.hostNetwrk: unknown field "hostNetwrk": did you mean "hostNetwork"?`},
		{"a field of the workload that does not exist", workloadYAML("Deployment", "replica: 1"), "",
			`6:3 spec.replica: unknown field "replica": did you mean "replicas"?`},
		{"a field of another kind", workloadYAML("DaemonSet", "replicas: 1"), "", `6:3 spec.replicas: unknown field "replicas"`},
		{"a value that does not fit", workloadYAML("Deployment", "replicas: many"), "", `6:13 spec.replicas: expected a number (int32), got a string ("many")`},
		{"two replicas", workloadYAML("StatefulSet", "replicas: 2"), "",
			"6:13 spec.replicas: is 2: this machine runs one pod of it; write replicas: 1, or a document with a name of its own for each pod"},
		{"less than no replicas", workloadYAML("Deployment", "replicas: -1"), "", "6:13 spec.replicas: Invalid value: -1"},
		{"no replicas", workloadYAML("Deployment", "replicas: 0"), "", "~6:13 spec.replicas: is 0: no pod of it runs"},
		{"no replicas of what is wrong", workloadYAML("Deployment", "replicas: 0", "dnsPolicy: x"), "",
			"~6:13 spec.replicas: is 0: no pod of it runs\n10:18 spec.template.spec.dnsPolicy: Unsupported value"},
		{"without a selector", strings.Replace(workloadYAML("Deployment", ""), "selector: {matchLabels: {app: web}}", "paused: false", 1), "", "4:1 spec.selector: Required value"},
		{"an empty selector", strings.Replace(workloadYAML("Deployment", ""), "{matchLabels: {app: web}}", "{}", 1), "", "5:3 spec.selector: Invalid value: an empty selector"},
		{"a selector that is no selector", strings.Replace(workloadYAML("Deployment", ""), "{matchLabels: {app: web}}", "{matchExpressions: [{key: a, operator: Is}]}", 1), "",
			`5:3 spec.selector: Invalid value: "Is" is not a valid label selector operator`},
		{"a selector of other pods", strings.Replace(workloadYAML("Deployment", ""), "{app: web}}\n  t", "{app: db}}\n  t", 1), "",
			"7:16 spec.template.metadata.labels: do not match spec.selector, app=db"},
		{"a policy that is a Job's", workloadYAML("Deployment", "", "restartPolicy: Never"), "",
			`9:22 spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`},
		{"a deadline that is a Job's", workloadYAML("Deployment", "", "activeDeadlineSeconds: 5"), "", "9:30 spec.template.spec.activeDeadlineSeconds: Forbidden"},
		{"a service account", workloadYAML("Deployment", "", "serviceAccountName: me"), "default/web-node1", "~9:27 spec.template.spec.serviceAccountName: has no effect here"},
		{"a name of no pod", strings.Replace(workloadYAML("StatefulSet", ""), "name: web", "name: We", 1), "", `3:18 metadata.name: Invalid value: "We-0-node1"`},
		{"without a name", strings.Replace(workloadYAML("StatefulSet", ""), "name: web, ", "", 1), "", "3:1 metadata.name: Required value"},

		{"a job that restarts for ever", workloadYAML("Job", "", "restartPolicy: Always"), "", "8:22 spec.template.spec.restartPolicy: Required value: a Job's is Never or OnFailure"},
		{"a job without a policy", workloadYAML("Job", ""), "", "7:5 spec.template.spec.restartPolicy: Required value: a Job's is Never or OnFailure"},
		{"a job in parts", workloadYAML("Job", "parallelism: 2", "restartPolicy: Never"), "", "5:16 spec.parallelism: is 2: this machine runs one pod of it"},
		{"a job that waits", workloadYAML("Job", "suspend: true", "restartPolicy: Never"), "", "~5:12 spec.suspend: is true: no pod of it runs"},
		{"a job with retries", workloadYAML("Job", "backoffLimit: 4", "restartPolicy: Never"), "default/web-node1", ""},
		{"a job with less than none", workloadYAML("Job", "backoffLimit: -1", "restartPolicy: Never"), "", "5:17 spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"},
		{"a job without retries", workloadYAML("Job", "backoffLimit: 0", "restartPolicy: Never"), "default/web-node1", ""},
		{"a job that goes by itself", workloadYAML("Job", "ttlSecondsAfterFinished: 9", "restartPolicy: OnFailure"), "default/web-node1", "~5:28 spec.ttlSecondsAfterFinished: has no effect here"},
		{"a job with an index", workloadYAML("Job", "completionMode: Indexed", "restartPolicy: Never"), "default/web-node1", "~5:19 spec.completionMode: has no effect here"},
		{"a job with no time", workloadYAML("Job", "activeDeadlineSeconds: 0", "restartPolicy: Never"), "", "5:26 spec.activeDeadlineSeconds: Invalid value: 0"},
		{"cron job", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n", "", "2:7 kind: CronJob cannot run here: there is no schedule"},
		{"an old version", "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: a}\n", "", `1:13 apiVersion: a Deployment is read as apps/v1 only: write "apiVersion: apps/v1"`},

		{"claim", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce]}\n", "", ""},
		{"a claim's misspelt field", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessMode: [ReadWriteOnce]}\n", "", `4:8 spec.accessMode: unknown field "accessMode"`},
		{"a claim of a device", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {volumeMode: Block}\n", "", "4:20 spec.volumeMode: Unsupported value"},
		{"a claim of no name", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a/b}\n", "", "3:18 metadata.name: Invalid value"},
		{"claim template", workloadYAML("StatefulSet", "volumeClaimTemplates: [{metadata: {name: data}}]"), "default/web-0-node1", ""},
		{"a claim template of no name", workloadYAML("StatefulSet", "volumeClaimTemplates: [{metadata: {name: a.b}}]"), "", "6:44 spec.volumeClaimTemplates[0].metadata.name: Invalid value"},

		{"service", "apiVersion: v1\nkind: Service\n", "", "~2:7 kind: Service " + unserved},
		{"two services and a role", "apiVersion: v1\nkind: Service\n---\napiVersion: v1\nkind: Service\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n", "",
			"~2:7 kind: Service " + unserved + "\n~8:7 kind: Role " + unserved},
		{"a service of another group", "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a}\n", "",
			"1:13 apiVersion: serving.knative.dev/v1 Service is not a static pod"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pods, problems := documents.Decode("/m/x.yaml", []byte(tt.file), node1)
			if got := podNames(pods); got != tt.pods {
				t.Errorf("pods %q, want %q", got, tt.pods)
			}
			checkWords(t, problems, tt.problems)
		})
	}
}

// The one pod of a Deployment and the same Pod are one pod.
func TestAWorkloadsPodIsThePod(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\nspec: {containers: [{name: c, image: busybox}]}\n"
	want, _ := documents.Decode("/m/x.yaml", []byte(pod), node1)
	got, _ := documents.Decode("/m/x.yaml", []byte(workloadYAML("Deployment", "paused: true")), node1)
	if len(got) != 1 || len(want) != 1 || !manifests.Same(got[0], want[0]) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAMemberOfASetHasANameAndClaims(t *testing.T) {
	pods, problems := documents.Decode("/m/x.yaml", []byte(workloadYAML("StatefulSet",
		"serviceName: peers\n  volumeClaimTemplates: [{metadata: {name: data}}, {metadata: {name: log}}]",
		"volumes: [{name: log, emptyDir: {}}]")), node1)
	if len(pods) != 1 {
		t.Fatal(problems)
	}
	p := pods[0]
	if p.Spec.Hostname != "web-0" || p.Spec.Subdomain != "peers" || p.Labels["apps.kubernetes.io/pod-index"] != "0" || p.Labels["app"] != "web" {
		t.Errorf("host %s.%s, labels %v", p.Spec.Hostname, p.Spec.Subdomain, p.Labels)
	}
	var claims []string
	for _, v := range p.Spec.Volumes {
		claims = append(claims, v.Name+"="+v.PersistentVolumeClaim.ClaimName)
	}
	if got := strings.Join(claims, " "); got != "log=log-web-0 data=data-web-0" {
		t.Errorf("claims %s", got)
	}
}

func TestAJobsDeadlineIsItsPods(t *testing.T) {
	for own, want := range map[string]int64{"5": 5, "70": 60} {
		pods, problems := documents.Decode("/m/x.yaml", []byte(workloadYAML("Job", "activeDeadlineSeconds: 60", "restartPolicy: Never", "activeDeadlineSeconds: "+own)), node1)
		if len(pods) != 1 || *pods[0].Spec.ActiveDeadlineSeconds != want {
			t.Errorf("%s: %v %v", own, pods, problems)
		}
	}
}

// A workload that is wrong holds the last good version of its own pod.
func TestAWrongWorkloadHoldsItsPod(t *testing.T) {
	for kind, want := range map[string]string{"Deployment": "default/web-node1", "StatefulSet": "default/web-0-node1"} {
		for _, spec := range []string{"replicas: 2", "replicas: many", "x: [", "\t"} {
			c := documents.Read("/m/x.yaml", []byte(workloadYAML(kind, spec)), node1)
			if held := len(c.Refused) == 1 && c.Refused[0].String() == want; !held && !c.Unclear || len(c.Pods) > 0 {
				t.Errorf("%s %q: %v, %v", kind, spec, c.Refused, c.Problems)
			}
		}
	}
	c := documents.Read("/m/x.yaml", []byte(workloadYAML("StatefulSet", "ordinals: {start: 3}\n  replicas: 2")), node1)
	if len(c.Refused) != 1 || c.Refused[0].Name != "web-3-node1" {
		t.Errorf("refused %v", c.Refused)
	}
}

func TestPlacesAreInTheTemplate(t *testing.T) {
	pods, _, problems := documents.DecodePlaced("/m/x.yaml", []byte(workloadYAML("Deployment", "")), node1)
	if len(pods) != 1 {
		t.Fatal(problems)
	}
	if at := pods[0].At("spec.containers[0].image"); at.Line != 11 || at.Column != 16 || at.Field != "spec.template.spec.containers[0].image" {
		t.Errorf("image at %+v", at)
	}
}

// What helm, kustomize and podman print runs, or a sentence says why not: the page has
// for each file its pods and all that is said. MONOPOD_UPDATE=1 writes it.
func TestGeneratedManifestsRunOrSayWhyNot(t *testing.T) {
	const dir, page = "../../testdata/manifests/workloads", "../../testdata/manifests/workloads.txt"
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	var got strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pods, problems := documents.Decode(file, data, node1)
		fmt.Fprintf(&got, "%s: %s\n", filepath.Base(file), cmp.Or(podNames(pods), "no pod"))
		for line := range strings.Lines(words(problems)) {
			fmt.Fprintf(&got, "  %s\n", strings.TrimSuffix(line, "\n"))
		}
		if len(pods) == 0 && len(problems) == 0 {
			t.Errorf("%s: no pod, and no word why", file)
		}
	}
	if os.Getenv("MONOPOD_UPDATE") == "1" {
		if err := os.WriteFile(page, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil || got.String() != string(want) {
		t.Errorf("%v: got\n%s\nwant\n%s", err, got.String(), want)
	}
}

// A Job's pod is run again as often as the Job says; that alone is no other pod, which
// would run a Job again that has ended under a monopod that did not know it.
func TestTheRetriesOfAJobAreInItsPod(t *testing.T) {
	rows := []struct{ spec, policy, want string }{
		{"", "Never", "OnFailure Never/6"},
		{"backoffLimit: 2", "Never", "OnFailure Never/2"},
		{"backoffLimit: 0", "Never", "Never "},
		{"", "OnFailure", "OnFailure OnFailure/6"},
		{"backoffLimit: 0", "OnFailure", "OnFailure OnFailure/0"},
	}
	digests := map[string]string{}
	for _, r := range rows {
		pods, _ := documents.Decode("/m/a.yaml", []byte(workloadYAML("Job", r.spec, "restartPolicy: "+r.policy)), node1)
		if len(pods) != 1 {
			t.Fatalf("%+v: %v", r, pods)
		}
		p := pods[0]
		if got := string(p.Spec.RestartPolicy) + " " + p.Annotations[annotations.Job]; got != r.want {
			t.Errorf("%s with %q: %s, want %s", r.policy, r.spec, got, r.want)
		}
		if was := digests[r.policy]; was != "" && was != p.Digest {
			t.Errorf("%s with %q: another digest", r.policy, r.spec)
		}
		digests[r.policy] = p.Digest
	}
	if digests["Never"] == digests["OnFailure"] {
		t.Error("another restartPolicy is no other pod")
	}
}
