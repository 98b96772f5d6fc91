package once

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

func TestATimeoutSaysWhatWasWaitedFor(t *testing.T) {
	job, db, web := made("job", "Never", "c"), made("db", "Always", "c"), made("web", "Never", "a", "b")
	a, code, _ := tell(t, []*v1.Pod{job, db, web}, func(a *actor) { a.config.Timeout = time.Minute }, func(a *actor) {
		a.report(now(db, v1.PodRunning, states{"c": runs}))
		a.report(now(job, v1.PodRunning, states{"c": runs}))
		down := waiting("NetworkNotReady", "the runtime has no network for pods yet: no cni")
		a.report(now(web, v1.PodPending, states{"a": down, "b": down}))
	})
	if code != codeTimeout {
		t.Errorf("code %d", code)
	}
	a.says("the work has not ended within 1m0s: job/c still runs; web: the runtime has no network for pods yet: no cni; ")
}

func TestAnImageThatNoRegistryHasEndsTheRun(t *testing.T) {
	job := made("job", "Never", "c")
	for text, ends := range map[string]bool{
		`rpc error: code = NotFound desc = failed to pull and unpack image "r/x:1": failed to resolve reference "r/x:1": r/x:1: not found`: true,
		`reading manifest 1 in r/x: manifest unknown`:                                                   true,
		`pull access denied, repository does not exist or may require authorization`:                    true,
		"reading manifest 1 in docker.io/r/x: requested access to the resource is denied":               true,
		"reading manifest 1 in r/x: repository name not known to registry":                              true,
		"reading manifest 1 in r/x: authentication required":                                            true,
		"reading manifest 1 in r/x: access to the requested resource is not authorized":                 true,
		"short name mode is enforcing, but image name x:1 returns ambiguous list":                       true,
		`short-name "x:1" did not resolve to an alias and no unqualified-search registries are defined`: true,
		`failed to do request: dial tcp: lookup r: no such host`:                                        false,
		`unexpected status from HEAD request: 503 Service Unavailable`:                                  false,
	} {
		for _, reason := range []string{"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "Other"} {
			all := []view{now(job, v1.PodPending, states{"c": waiting(reason, text)})}
			o := new(evaluator).look(all)
			if got, want := o != nil, ends && reason != "Other" && (reason != "ImageInspectError" || strings.HasPrefix(text, "short")); got != want || o != nil && (o.Code != codeFailed || !o.Shaky || !strings.Contains(o.Text, "job/c cannot start")) {
				t.Errorf("%s: %s: %+v", reason, text, o)
			}
		}
	}
}

func TestTheFirstFailureMayEndTheRun(t *testing.T) {
	job, long := made("job", "Never", "c"), made("long", "Never", "c")
	all := []view{now(job, v1.PodFailed, states{"c": exited("1", 7)}), now(long, v1.PodRunning, states{"c": runs})}
	if o := new(evaluator).look(all); o != nil {
		t.Errorf("it ends without being told to: %+v", o)
	}
	if o := (&evaluator{fast: true}).look(all); o == nil || o.Code != 7 || o.End != endFailed {
		t.Errorf("it ends with %+v", o)
	}
}
