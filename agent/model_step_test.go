package agent

import (
	"context"
	"fmt"
	"math"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"monopod/agent/pleg"
	"monopod/cri/critest"
	"monopod/manifests"
)

// A step does one thing to the agent's world and says what; "" if it was not
// possible.
type step struct {
	weight int
	do     func(*walk) string
}

var modelSteps = []step{
	{5, (*walk).edit},
	{3, (*walk).drop},
	{4, (*walk).turnObject},
	{3, (*walk).flick},
	{3, (*walk).rename},
	{2, (*walk).toggleSuffix},
	{2, (*walk).wipe},
	{2, (*walk).removeLeft},
	{3, (*walk).stepClock},
	{2, (*walk).hideNetwork},
	{5, (*walk).stand},
	{2, (*walk).dieAtOnce},
	{4, (*walk).release},
	{2, (*walk).siege},
	{3, (*walk).putBack},
	{6, (*walk).crash},
	{2, (*walk).loseContainer},
	{1, (*walk).loseTrack},
	{3, (*walk).loseSandbox},
	{3, (*walk).sicken},
	{2, (*walk).spoilHooks},
	{2, (*walk).restartRuntime},
	{4, (*walk).spoilDisk},
	{1, (*walk).reboot},
	{5, (*walk).endAgent},
	{8, (*walk).orderFault},
	{2, (*walk).loseEvents},
	{1, (*walk).slowRuntime},
	{2, (*walk).slowPulls},
	{4, (*walk).awaitImage},
	{3, (*walk).bringImage},
	{5, (*walk).editWatched},
	{3, (*walk).stopPod},
	{2, (*walk).startPod},
	{3, (*walk).holdPod},
	{2, (*walk).releasePods},
	{3, (*walk).askRestart},
	{3, (*walk).askRollback},
	{4, (*walk).stopAndEdit},
	{2, (*walk).goDown},
	{1, (*walk).turnWindow},
	{3, (*walk).turnLock},
	{6, (*walk).writeNote},
	{10, (*walk).pass},
}

// edit changes a manifest, or adds one.
func (w *walk) edit() string {
	name := pick(w.rand, modelPods...)
	old, there := w.wishes[name]
	what := "new"
	if there {
		w.wishes[name], what = old.edit(w.rand)
	} else {
		w.wishes[name] = newWish(w.rand, name)
		what = "add " + w.wishes[name].String()
	}
	w.deliver()
	return name + ": " + what
}

func (w *walk) drop() string {
	name := pick(w.rand, modelPods...)
	if _, there := w.wishes[name]; !there {
		return ""
	}
	w.former[name] = w.wishes[name]
	delete(w.wishes, name)
	w.deliver()
	return name + ": remove"
}

// putBack adds a manifest again that was removed.
func (w *walk) putBack() string {
	name := pick(w.rand, modelPods...)
	old, was := w.former[name]
	if _, there := w.wishes[name]; there || !was {
		return ""
	}
	w.wishes[name] = old
	w.deliver()
	return name + ": put back"
}

// flick removes a manifest and puts it back.
func (w *walk) flick() string {
	name := pick(w.rand, modelPods...)
	old, there := w.wishes[name]
	if !there {
		return ""
	}
	delete(w.wishes, name)
	w.deliver()
	if w.rand.IntN(2) == 0 {
		synctest.Wait()
	}
	w.wishes[name] = old
	w.deliver()
	return name + ": remove and put back"
}

// crash ends a container.
func (w *walk) crash() string {
	running := w.ourRunning()
	if len(running) == 0 {
		return ""
	}
	c := pick(w.rand, running...)
	name := c.Pod + "/" + c.Name
	switch n := w.rand.IntN(4); n {
	case 3:
		w.OOM(c.ID)
		return name + ": killed for memory"
	default:
		w.Exit(c.ID, int32(n))
		return fmt.Sprintf("%s: exits with %d", name, n)
	}
}

// sicken makes the liveness probe of a container fail until it is restarted.
func (w *walk) sicken() string {
	running := w.ourRunning()
	if len(running) == 0 {
		return ""
	}
	c := pick(w.rand, running...)
	w.sick.Store(c.ID, true)
	return c.Pod + "/" + c.Name + ": is sick"
}

func (w *walk) spoilHooks() string {
	n := int32(w.rand.IntN(4))
	w.badHooks.Store(n)
	return fmt.Sprintf("%d hooks will fail", n)
}

// exec is what commands in containers do.
func (w *walk) exec(ctx context.Context, c critest.Container, command []string) (string, int32, error) {
	switch command[0] {
	case "live":
		if _, sick := w.sick.Load(c.ID); sick {
			return "sick", 1, nil
		}
	case "unready":
		return "not yet", 1, nil
	case "pre":
		d := time.Second
		if c.Name == "stubborn" {
			d = time.Hour
		}
		pleg.Sleep(ctx, d)
	case "post":
		pleg.Sleep(ctx, 700*time.Millisecond)
		if w.badHooks.Add(-1) >= 0 {
			return "no", 1, nil
		}
	}
	return "", 0, ctx.Err()
}

func (w *walk) loseTrack() string {
	synctest.Wait() // what is chosen must not go meanwhile
	running := w.ourRunning()
	if len(running) == 0 {
		return ""
	}
	c := pick(w.rand, running...)
	w.LoseTrack(c.ID)
	return c.Pod + "/" + c.Name + ": its state is unknown"
}

func (w *walk) loseContainer() string {
	synctest.Wait() // what is chosen must not go meanwhile
	ours := w.ourContainers()
	if len(ours) == 0 {
		return ""
	}
	c := pick(w.rand, ours...)
	w.RemoveContainerBehindBack(c.ID)
	// Another agent knows of no restarts but those that the runtime tells of.
	delete(w.before[manifests.Key{Namespace: c.Namespace, Name: c.Pod}].restarts, c.Name)
	return fmt.Sprintf("%s/%s #%d: removed by others", c.Pod, c.Name, c.Attempt)
}

func (w *walk) loseSandbox() string {
	synctest.Wait() // what is chosen must not go meanwhile
	ours := w.ours()
	if len(ours) == 0 {
		return ""
	}
	b := pick(w.rand, ours...)
	if w.rand.IntN(2) == 0 {
		w.RemoveSandboxBehindBack(b.ID)
		clear(w.before[manifests.Key{Namespace: b.Namespace, Name: b.Name}].restarts) // as of one container
		return b.Name + ": sandbox removed by others"
	}
	w.KillSandbox(b.ID)
	return b.Name + ": sandbox killed"
}

func (w *walk) restartRuntime() string {
	if w.rand.IntN(2) == 0 {
		w.Restart()
		return "runtime restarts"
	}
	w.Stop()
	return "runtime stops"
}

func (w *walk) reboot() string {
	w.down()
	w.Reboot()
	w.rebooted = true
	for k := range w.left {
		w.left[k].Ready = false
	}
	return "reboot"
}

func (w *walk) endAgent() string {
	switch {
	case !w.up:
		w.launch()
		return "agent starts"
	case w.rand.IntN(3) == 0:
		w.halt()
		return "agent stops"
	}
	w.down()
	if w.rand.IntN(2) == 0 {
		return "agent is killed"
	}
	w.launch()
	return "agent is killed, another starts"
}

// orderFault orders trouble with one of the next calls.
func (w *walk) orderFault() string {
	if !w.up {
		return ""
	}
	method := pick(w.rand, "RunPodSandbox", "RunPodSandbox", "PodSandboxStatus", "StopPodSandbox", "RemovePodSandbox", "CreateContainer", "CreateContainer",
		"StartContainer", "StartContainer", "StopContainer", "StopContainer", "RemoveContainer", "ListContainers", "ListPodSandbox", "ContainerStatus",
		"ImageStatus", "PullImage", "Status", "Version", critest.Changes, critest.Any)
	f, nth := critest.On(method), 1+w.rand.IntN(3)
	f.Nth(nth)
	kind := pick(w.rand, "fails", "is refused", "is late", "hangs", "hangs after", "loses its answer", "kills the agent", "kills the agent after", "is slow")
	switch kind {
	case "fails":
		f.Times(nth).Fail(codes.Unknown, "the disk is full")
	case "is refused":
		f.Fail(pick(w.rand, codes.Unavailable, codes.ResourceExhausted, codes.Internal), "not now")
	case "is late":
		f.Fail(codes.DeadlineExceeded, "context deadline exceeded")
	case "hangs":
		f.Hang()
	case "hangs after":
		f.HangAnswer()
	case "loses its answer":
		f.LoseAnswer()
	case "kills the agent":
		f.Before(w.life.cutOff)
	case "kills the agent after":
		f.After(w.life.cutOff)
	case "is slow":
		f.Delay(time.Duration(1+w.rand.IntN(3000)) * time.Millisecond)
	}
	w.Fault(f)
	return fmt.Sprintf("call %d of %s %s", nth, method, kind)
}

func (w *walk) loseEvents() string {
	if w.rand.IntN(2) == 0 {
		w.DropStreams()
		return "event streams are dropped"
	}
	n := 1 + w.rand.IntN(5)
	w.DropEvents(n)
	return fmt.Sprintf("%d events will be lost", n)
}

func (w *walk) slowRuntime() string {
	method := pick(w.rand, "RunPodSandbox", "CreateContainer", "StartContainer", "RemoveContainer", "RemovePodSandbox")
	d := pick(w.rand, 0, 30*time.Millisecond, time.Second, 20*time.Second)
	w.Takes(method, d)
	return fmt.Sprintf("%s takes %s from now on", method, d)
}

func (w *walk) slowPulls() string {
	image := pick(w.rand, "img:3", "img:4")
	d := pick(w.rand, 0, time.Second, 10*time.Minute)
	var err error
	if w.rand.IntN(2) == 0 {
		err = fmt.Errorf("no such image")
	}
	w.OnPull(image, d, err)
	return fmt.Sprintf("pulls of %s take %s and end with %v", image, d, err)
}

// pass lets time pass, from a millisecond to an hour or so.
func (w *walk) pass() string {
	d := time.Duration(math.Pow(10, 6+w.rand.Float64()*6))
	if w.rand.IntN(60) == 0 {
		d = time.Duration(1+w.rand.IntN(3)) * time.Hour
	}
	time.Sleep(d)
	return fmt.Sprintf("%s pass", d)
}
