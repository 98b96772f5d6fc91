package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"monopod/cri/critest"
)

func (w *walk) stepClock() string {
	by := pick(w.rand, -365*24*time.Hour, -time.Hour, -time.Minute, -time.Second, 0, time.Second, time.Minute, time.Hour, 365*24*time.Hour)
	w.answers.setClock(by)
	return fmt.Sprintf("the runtime's clock is %s ahead", by)
}

func (w *walk) hideNetwork() string {
	n := pick(w.rand, "", "none", "unknown")
	w.answers.setNetwork(n)
	return fmt.Sprintf("sandboxes' network is %q", n)
}

// podName is the name of a pod in the runtime.
func (w *walk) podName(manifest string) string {
	if w.noSuffix {
		return manifest
	}
	return manifest + "-n"
}

// stand orders trouble that lasts until it is cleared or released.
func (w *walk) stand() string {
	method := pick(w.rand, "RunPodSandbox", "PodSandboxStatus", "StopPodSandbox", "RemovePodSandbox", "CreateContainer", "StartContainer",
		"StopContainer", "RemoveContainer", "ContainerStatus", "ImageStatus", "PullImage", "ListContainers", "ListPodSandbox", critest.Changes)
	f, of := critest.On(method), "all"
	if w.rand.IntN(3) > 0 && !slices.Contains([]string{"ImageStatus", "PullImage", "ListContainers", "ListPodSandbox"}, method) {
		of = w.podName(pick(w.rand, modelPods...))
		f.Of(of)
	}
	kind := pick(w.rand, "hangs", "hangs", "hangs after", "fails", "is refused", "loses its answer")
	switch kind {
	case "hangs":
		w.hung = append(w.hung, f.Hang())
	case "hangs after":
		w.hung = append(w.hung, f.HangAnswer())
	case "fails":
		f.Fail(codes.Unknown, "device or resource busy")
	case "is refused":
		f.Fail(pick(w.rand, codes.Unavailable, codes.ResourceExhausted, codes.Internal, codes.DeadlineExceeded), "not now")
	case "loses its answer":
		f.LoseAnswer()
	}
	w.Fault(f)
	return fmt.Sprintf("each %s of %s %s", method, of, kind)
}

// dieAtOnce lets each sandbox of a pod die when it was made.
func (w *walk) dieAtOnce() string {
	name := w.podName(pick(w.rand, modelPods...))
	w.Fault(critest.On("RunPodSandbox").Of(name).After(func() {
		for _, b := range w.ours() {
			if b.Name == name && b.Ready {
				w.KillSandbox(b.ID)
			}
		}
	}))
	return name + ": each sandbox dies at once"
}

// release lets calls that hang go on.
func (w *walk) release() string {
	if len(w.hung) == 0 {
		return ""
	}
	k := w.rand.IntN(len(w.hung))
	w.hung[k].Release()
	w.hung = slices.Delete(w.hung, k, k+1)
	return "what hangs goes on"
}

// siege lets trouble stand for an hour at most, in which the agent is frugal and after
// which it says what is wrong.
func (w *walk) siege() string {
	w.reap()
	if !w.up {
		return ""
	}
	var what []string
	for range 1 + w.rand.IntN(3) {
		trouble := pick(w.rand, (*walk).stand, (*walk).stand, (*walk).stand, (*walk).dieAtOnce, (*walk).hideNetwork, (*walk).spoilDisk)
		what = append(what, trouble(w))
	}
	d := pick(w.rand, 20*time.Minute, 20*time.Minute, time.Hour)
	w.note("%s: %s", d, strings.Join(what, "; "))
	w.answers.take()
	said := len(w.log.String())
	w.after(d)
	w.frugal(w.answers.take())
	w.quiet(w.log.String()[said:], d)
	w.reap()
	if w.up {
		w.explained()
	}
	return fmt.Sprintf("%s have passed", d)
}

// quiet checks that trouble that lasts is not said again and again: nothing of one pod, or of one
// of its containers, more than once a minute, but for a while at first.
func (w *walk) quiet(said string, lasts time.Duration) {
	w.Helper()
	if n := strings.Count(said, "\n"); n > modelLines {
		w.Fatalf("%d lines in the log", n)
	}
	most := int(lasts/time.Minute) + modelFirst
	lines := map[string]int{}
	for line := range strings.Lines(said) {
		of := lineForm.FindStringSubmatch(line)
		if of == nil {
			continue
		}
		if lines[of[1]]++; lines[of[1]] > most {
			w.Fatalf("more than %d lines in %s are %s", most, lasts, of[1])
		}
	}
}

// modelFirst is how many lines more there may be while a back-off grows.
const modelFirst = 12

// lineForm finds what is said, and of which container of which pod.
var lineForm = regexp.MustCompile(`(msg=(?:"(?:[^"\\]|\\.)*"|\S+)(?: pod=\S+)?(?: container=\S+)?)`)

// undisturbed checks that what is no reason to stop anything stops nothing.
func (w *walk) undisturbed() {
	w.Helper()
	before := w.identities()
	w.ForgetCalls()
	for range 1 + w.rand.IntN(3) {
		w.note("no reason: %s", w.harmless())
		w.after(time.Duration(1+w.rand.IntN(120)) * time.Second)
	}
	w.ClearFaults()
	w.Resume()
	w.answers.setNetwork("")
	noErr(w.T, w.disk.spoil(diskWell))
	w.after(time.Minute)
	if now := w.identities(); !slices.Equal(before, now) || w.made() > 0 {
		w.Fatalf("without reason %d calls that make or start something, and of\n%s\nis left\n%s",
			w.made(), strings.Join(before, "\n"), strings.Join(now, "\n"))
	}
	if wrong := w.wrong(); len(wrong) > 0 {
		w.Fatalf("is not well after what is no reason: %s", strings.Join(wrong, "\n"))
	}
}

// identities are what lives in the runtime.
func (w *walk) identities() (out []string) {
	for _, b := range w.ours() {
		if b.Ready {
			out = append(out, b.Name+" "+b.ID)
		}
	}
	for _, c := range w.ourRunning() {
		out = append(out, c.Pod+"/"+c.Name+" "+c.ID)
	}
	slices.Sort(out) // two that were made at one time have no order
	return out
}

func (w *walk) harmless() string {
	switch w.rand.IntN(10) {
	case 0:
		w.down()
		w.launch()
		return "the agent is killed"
	case 1:
		w.halt()
		w.launch()
		return "the agent restarts"
	case 2:
		w.Restart()
		return "the runtime restarts"
	case 3:
		w.Stop()
		return "the runtime stops"
	case 4:
		w.answers.setNetwork("unknown")
		return "sandboxes' network is unknown"
	case 5:
		w.DropStreams()
		w.DropEvents(1 + w.rand.IntN(5))
		return "events are lost"
	case 6:
		return w.stepClock()
	case 7, 8:
		if did := w.spoilDisk(); did != "" {
			return did
		}
	}
	method := pick(w.rand, "ListContainers", "ListPodSandbox", "ContainerStatus", "PodSandboxStatus", "Status", "Version", "ImageStatus")
	f := critest.On(method)
	if w.rand.IntN(2) == 0 {
		w.Fault(f.Hang())
		return method + " hangs"
	}
	w.Fault(f.Fail(pick(w.rand, codes.Unknown, codes.Unavailable, codes.DeadlineExceeded, codes.Internal), "not now"))
	return method + " fails"
}
