package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/cri/critest"
)

// waitsFor returns why the first container of a pod waits.
func (r *rig) waitsFor(key string) string {
	r.Helper()
	st := r.status(key).ContainerStatuses[0].State
	if st.Waiting == nil {
		return fmt.Sprintf("%+v", st)
	}
	return st.Waiting.Reason + ": " + st.Waiting.Message
}

func TestAPullSaysHowLongItTakes(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("new:1", 25*time.Second, nil)
		r.want(manifest("web", "new:1"))
		for _, row := range []struct {
			after time.Duration
			want  string
		}{
			{time.Second, `ContainerCreating: pulling image "new:1"`},
			{10 * time.Second, `ContainerCreating: pulling image "new:1", 10s so far`},
			{10 * time.Second, `ContainerCreating: pulling image "new:1", 20s so far`},
		} {
			r.after(row.after)
			if got := r.waitsFor("default/web-n"); got != row.want {
				t.Errorf("after %s: %s, want %s", row.after, got, row.want)
			}
		}
		r.after(5 * time.Second)
		r.expect("default/web-n/c")
	})
}

func TestPullsWaitForOthersAndSaySo(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("", 25*time.Second, nil)
		var docs []string
		for k := range image.Parallel + 1 {
			docs = append(docs, manifest(fmt.Sprintf("p%d", k), fmt.Sprintf("new:%d", k), "initContainers: [{name: i, image: img:1}]"))
		}
		r.Program("i", critest.Exits(0))
		r.want(docs...)
		r.after(12 * time.Second)
		said := map[string]int{}
		for k := range docs {
			said[strings.ReplaceAll(r.waitsFor(fmt.Sprintf("default/p%d-n", k)), fmt.Sprintf("new:%d", k), "X")]++
		}
		if said[`PodInitializing: pulling image "X", 10s so far`] != image.Parallel || said[`PodInitializing: image "X" waits for other pulls, 10s so far`] != 1 {
			t.Errorf("said %v", said)
		}
		r.after(40 * time.Second)
		if n := len(r.Running()); n != len(docs) {
			t.Errorf("%d run", n)
		}
	})
}

func TestAPullEndsWithItsPod(t *testing.T) {
	live(t, func(r *rig) {
		slow := r.Fault(critest.On("PullImage").Of("new:1").Hang())
		r.want(manifest("web", "new:1"))
		<-slow.Struck()
		r.want()
		r.after(time.Second)
		if calls := r.Calls(); !slices.ContainsFunc(calls, func(c critest.Call) bool { return c.Method == "PullImage" && c.Err != nil }) {
			t.Error("the pull goes on")
		}
		if pods := r.store.Pods(); len(pods) > 0 {
			t.Errorf("%s is still there", pods[0].Name)
		}
	})
}

func TestAFailedPullBacksOffAndIsTriedAgain(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("new:1", time.Second, errors.New("no route: https://me:geheim@reg"))
		r.want(manifest("web", "new:1"))
		const failed = `PullImage new:1: failed to pull and unpack image "docker.io/library/new:1": no route: https://***@reg`
		const backOff = `ImagePullBackOff: Back-off pulling image "new:1": ErrImagePull: ` + failed
		for _, row := range []struct {
			after time.Duration
			pulls int
			want  string
		}{
			{2 * time.Second, 1, "ErrImagePull: " + failed},
			{8 * time.Second, 1, "ErrImagePull: " + failed},
			{1500 * time.Millisecond, 2, "ErrImagePull: " + failed + ` (pulling image "new:1")`},
			{time.Second, 2, backOff},
			{19800 * time.Millisecond, 3, backOff + ` (pulling image "new:1")`},
			{time.Second, 3, backOff},
		} {
			r.after(row.after)
			if got, n := r.waitsFor("default/web-n"), r.Count("PullImage"); got != row.want || n != row.pulls {
				t.Errorf("after %s: %d pulls, %s\nwant %d, %s", row.after, n, got, row.pulls, row.want)
			}
		}
		r.OnPull("new:1", 0, nil)
		r.after(40 * time.Second)
		r.expect("default/web-n/c")
		if strings.Contains(r.log.String(), "geheim") {
			t.Errorf("a password is in the log")
		}
	})
}

// The next try is named wherever it is said that there is no image, by the moment of the puller.
func TestTheNextTryOfAnImageIsNamed(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("new:1")
		r.want(manifest("web", "new:1"))
		const why = "image new:1 cannot be pulled: no route to host"
		says := func(after time.Duration, want string) {
			t.Helper()
			r.after(after)
			if got := r.words("default/web-n"); got != "default/web: container c: "+want {
				r.Errorf("after %s it says %q, want %q", after, got, want)
			}
		}
		says(3*time.Second, why+"; next try in 7 s")
		says(8*time.Second, why+"; next try in 19 s") // which failed, too
		var failed []v1.Event
		r.events.List("default/web-n").Each(func(e *v1.Event) bool {
			if e.Reason == "Failed" || e.Reason == "BackOff" {
				failed = append(failed, *e)
			}
			return true
		})
		for k := range failed {
			if left := time.Until(events.NextOf(&failed[k])); left.Round(time.Second) != 19*time.Second {
				r.Errorf("%s is tried again in %s", failed[k].Message, left)
			}
		}
		if len(failed) == 0 {
			r.Error("no event says so")
		}
		r.OnPull("new:1", 15*time.Second, nil)
		says(20*time.Second, why+"; it is tried again now")
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if got := r.words("default/web-n"); got != "" {
			r.Errorf("of a pod that runs it says %q", got)
		}
		r.OnPull("other:1", 25*time.Second, nil)
		r.want(manifest("web", "new:1"), manifest("other", "other:1"))
		r.after(21 * time.Second)
		if got, want := r.words("default/other-n"), `default/other: container c: pulling image "other:1", 20s so far`; got != want {
			r.Errorf("of a pull it says %q, want %q", got, want)
		}
	})
}

func TestAnImageThatIsNotToBePulledIsLookedForEveryTenSeconds(t *testing.T) {
	live(t, func(r *rig) {
		r.want(strings.Replace(manifest("web", "new:1"), "image:", "imagePullPolicy: Never, image:", 1))
		r.after(95 * time.Second)
		if got := r.waitsFor("default/web-n"); got != `ErrImageNeverPull: Container image "new:1" is not present with pull policy of Never` {
			t.Error(got)
		}
		r.AddImage("new:1")
		r.after(10 * time.Second)
		r.expect("default/web-n/c")
	})
}
