package critest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
	"monopod/cri/critest"
)

// pod is one pod that a test runs on a runtime.
type pod struct {
	t       *testing.T
	c       *cri.Client
	config  *rt.PodSandboxConfig
	sandbox string
}

// bubble runs a test in a synctest bubble, on a runtime without a socket.
func bubble(t *testing.T, test func(t *testing.T, r *critest.Runtime, c *cri.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		r.AddImage("app")
		test(t, r, cri.New(r.Conn()))
	})
}

func newPod(t *testing.T, c *cri.Client, name string) *pod {
	t.Helper()
	p := &pod{t: t, c: c, config: &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Namespace: "default", Name: name, Uid: "u-" + name}}}
	id, err := c.RunSandbox(t.Context(), p.config, "")
	if err != nil {
		t.Fatal(err)
	}
	p.sandbox = id
	return p
}

func (p *pod) create(ctx context.Context, name string, attempt uint32) (string, error) {
	return p.c.CreateContainer(ctx, p.sandbox, &rt.ContainerConfig{
		Metadata: &rt.ContainerMetadata{Name: name, Attempt: attempt},
		Image:    &rt.ImageSpec{Image: "app"},
		LogPath:  name + ".log",
	}, p.config)
}

func (p *pod) start(name string) string {
	p.t.Helper()
	id, err := p.create(p.t.Context(), name, 0)
	if err == nil {
		err = p.c.StartContainer(p.t.Context(), id)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *pod) status(id string) *rt.ContainerStatus {
	p.t.Helper()
	status, err := p.c.ContainerStatus(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	return status
}

// describe returns "state code reason".
func describe(s *rt.ContainerStatus) string {
	return fmt.Sprintf("%s %d %s", s.State, s.ExitCode, s.Reason)
}

func wantError(t *testing.T, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("error %v, want one with %q", err, words)
	}
}

func TestProgramsEndAsTheySay(t *testing.T) {
	for _, row := range []struct {
		name    string
		program critest.Program
		after   time.Duration // looked at so long after the start
		state   rt.ContainerState
		code    int32
		reason  string
		ran     time.Duration
	}{
		{"runs", critest.Runs(), time.Hour, rt.ContainerState_CONTAINER_RUNNING, 0, "", 0},
		{"exits well", critest.Exits(0), 0, rt.ContainerState_CONTAINER_EXITED, 0, "Completed", 0},
		{"exits badly", critest.Exits(3), 0, rt.ContainerState_CONTAINER_EXITED, 3, "Error", 0},
		{"not yet", critest.ExitsAfter(time.Minute, 1), 59 * time.Second, rt.ContainerState_CONTAINER_RUNNING, 0, "", 0},
		{"exits later", critest.ExitsAfter(time.Minute, 1), 61 * time.Second, rt.ContainerState_CONTAINER_EXITED, 1, "Error", time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
				r.Program("main", row.program)
				p := newPod(t, c, "web")
				id := p.start("main")
				time.Sleep(row.after)
				synctest.Wait()
				s := p.status(id)
				if s.State != row.state || s.ExitCode != row.code || s.Reason != row.reason {
					t.Errorf("%s %d %q, want %s %d %q", s.State, s.ExitCode, s.Reason, row.state, row.code, row.reason)
				}
				if row.state == rt.ContainerState_CONTAINER_EXITED && time.Duration(s.FinishedAt-s.StartedAt) != row.ran {
					t.Errorf("ran for %s, want %s", time.Duration(s.FinishedAt-s.StartedAt), row.ran)
				}
			})
		})
	}
}

func TestStopTakesWhatTheProgramTakes(t *testing.T) {
	for _, row := range []struct {
		name    string
		program critest.Program
		grace   time.Duration
		took    time.Duration
		code    int32
	}{
		{"at once", critest.Runs(), 30 * time.Second, 0, 0},
		{"its own code", critest.Runs().OnTerm(0, 143), 30 * time.Second, 0, 143},
		{"takes its time", critest.Runs().OnTerm(5*time.Second, 1), 30 * time.Second, 5 * time.Second, 1},
		{"too slow", critest.Runs().OnTerm(time.Minute, 1), 30 * time.Second, 30 * time.Second, 137},
		{"ignores SIGTERM", critest.Runs().IgnoresTerm(), 2500 * time.Millisecond, 3 * time.Second, 137},
		{"no grace", critest.Runs(), 0, 0, 137},
		{"ended before", critest.Exits(4), time.Second, 0, 4},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
				r.Program("web/main", row.program)
				p := newPod(t, c, "web")
				id := p.start("main")
				began := time.Now()
				if err := c.StopContainer(t.Context(), id, row.grace); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != row.took {
					t.Errorf("took %s, want %s", took, row.took)
				}
				if code := p.status(id).ExitCode; code != row.code {
					t.Errorf("exit code %d, want %d", code, row.code)
				}
			})
		})
	}
}

func TestEachStartTakesTheNextProgram(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		r.Program("app", critest.Exits(7), critest.Exits(0))
		r.Program("default/web/bad", critest.FailsToStart(errors.New("no such file")))
		p := newPod(t, c, "web")
		var codes []int32
		for attempt := range uint32(3) {
			id, err := p.create(t.Context(), "main", attempt)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.StartContainer(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			codes = append(codes, p.status(id).ExitCode)
		}
		if !slices.Equal(codes, []int32{7, 0, 0}) {
			t.Errorf("exit codes %v, want 7 0 0", codes)
		}
		bad, err := p.create(t.Context(), "bad", 0)
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, c.StartContainer(t.Context(), bad), "no such file")
		if s := p.status(bad); s.ExitCode != 128 || s.Reason != "StartError" {
			t.Errorf("bad: %d %s, want 128 StartError", s.ExitCode, s.Reason)
		}
		wantError(t, c.StartContainer(t.Context(), bad), "container is in CONTAINER_EXITED state")
	})
}

func TestNamesAreReserved(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		r.Takes("RunPodSandbox", time.Minute)
		config := &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Namespace: "default", Name: "web", Uid: "u"}}
		given, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done := make(chan error)
		go func() {
			_, err := c.RunSandbox(given, config, "")
			done <- err
		}()
		synctest.Wait()
		if _, err := c.RunSandbox(t.Context(), config, ""); !cri.Busy(err) {
			t.Errorf("while it is being made: %v, want busy", err)
		}
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up: %v", err)
		}
		synctest.Wait()
		id, err := c.RunSandbox(t.Context(), config, "")
		if err != nil {
			t.Fatalf("after it was given up: %v", err)
		}
		if _, err := c.RunSandbox(t.Context(), config, ""); !cri.Busy(err) {
			t.Errorf("while it exists: %v, want busy", err)
		}
		if err := c.RemoveSandbox(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := c.RunSandbox(t.Context(), config, ""); err != nil {
			t.Errorf("after its removal: %v", err)
		}
	})
}

func TestContainersAreBusyMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		p := newPod(t, c, "web")
		id, err := p.create(t.Context(), "main", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.create(t.Context(), "main", 0); !cri.Busy(err) {
			t.Errorf("same name: %v, want busy", err)
		}
		r.Takes("StartContainer", 5*time.Second)
		r.Takes("RemoveContainer", time.Minute)
		go c.StartContainer(t.Context(), id)
		synctest.Wait()
		if err := c.StartContainer(t.Context(), id); !cri.Busy(err) {
			t.Errorf("start while starting: %v, want busy", err)
		}
		if err := c.RemoveContainer(t.Context(), id); !cri.Busy(err) {
			t.Errorf("remove while starting: %v, want busy", err)
		}
		r.Wait(t, func(r *critest.Runtime) bool { return len(r.Running()) == 1 })
	})
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		p := newPod(t, c, "web")
		id := p.start("main")
		r.Takes("RemoveContainer", time.Minute)
		go c.RemoveContainer(t.Context(), id)
		synctest.Wait()
		if err := c.RemoveContainer(t.Context(), id); !cri.Busy(err) {
			t.Errorf("remove while removing: %v, want busy", err)
		}
	})
}

func TestStoppingASandboxKillsItsContainers(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		p := newPod(t, c, "web")
		id := p.start("main")
		if s, err := c.SandboxStatus(t.Context(), p.sandbox); err != nil || s.Network.Ip == "" {
			t.Errorf("status %v, %v, want an address", s, err)
		}
		for range 2 {
			if err := c.StopSandbox(t.Context(), p.sandbox); err != nil {
				t.Fatal(err)
			}
		}
		if s := p.status(id); s.ExitCode != 137 {
			t.Errorf("exit code %d, want 137", s.ExitCode)
		}
		if s, err := c.SandboxStatus(t.Context(), p.sandbox); err != nil || s.State != rt.PodSandboxState_SANDBOX_NOTREADY {
			t.Errorf("status %v, %v, want not ready", s, err)
		}
		_, err := p.create(t.Context(), "late", 0)
		wantError(t, err, "is not running")
		for range 2 {
			if err := c.RemoveSandbox(t.Context(), p.sandbox); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.Sandboxes())+len(r.Containers()) != 0 {
			t.Errorf("left behind:\n%s", r)
		}
	})
}

func TestTheWorldTurns(t *testing.T) {
	for _, row := range []struct {
		name    string
		happens func(r *critest.Runtime)
		want    string // of the container
		ready   bool   // the sandbox
	}{
		{"exit", func(r *critest.Runtime) { r.Exit("main", 9) }, "CONTAINER_EXITED 9 Error", true},
		{"exit while the runtime is down", func(r *critest.Runtime) { r.Stop(); r.Exit("default/web/main", 9); r.Resume() }, "CONTAINER_EXITED 9 Error", true},
		{"out of memory", func(r *critest.Runtime) { r.OOM("web/main") }, "CONTAINER_EXITED 137 OOMKilled", true},
		{"lost", func(r *critest.Runtime) { r.LoseTrack("main") }, "CONTAINER_UNKNOWN 0 ", true},
		{"restart of the runtime", func(r *critest.Runtime) { r.Restart() }, "CONTAINER_RUNNING 0 ", true},
		{"sandbox killed", func(r *critest.Runtime) { r.KillSandbox("web") }, "CONTAINER_RUNNING 0 ", false},
		{"reboot", func(r *critest.Runtime) { r.Reboot() }, "CONTAINER_EXITED 255 Unknown", false},
		{"removed", func(r *critest.Runtime) { r.RemoveContainerBehindBack("main") }, "gone", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
				p := newPod(t, c, "web")
				id := p.start("main")
				row.happens(r)
				got := "gone"
				if s, err := c.ContainerStatus(t.Context(), id); err == nil {
					got = describe(s)
				} else if !cri.NotFound(err) {
					t.Error(err)
				}
				if got != row.want {
					t.Errorf("container %q, want %q", got, row.want)
				}
				if s, _ := r.Sandbox("web"); s.Ready != row.ready {
					t.Errorf("sandbox ready %v, want %v", s.Ready, row.ready)
				}
			})
		})
	}
}

func TestFaultsStrikeAsOrdered(t *testing.T) {
	create := func(p *pod, names ...string) (failed []string) {
		for _, name := range names {
			if _, err := p.create(p.t.Context(), name, 0); err != nil {
				failed = append(failed, name)
			}
		}
		return failed
	}
	for _, row := range []struct {
		name   string
		fault  func() *critest.Fault // made in the bubble: it has channels
		failed []string
		made   int
	}{
		{"each", func() *critest.Fault { return critest.On("CreateContainer").Fail(codes.Unknown, "disk full") }, []string{"a", "b", "c"}, 0},
		{"the second", func() *critest.Fault { return critest.On("CreateContainer").Nth(2).Fail(codes.Unknown, "disk full") }, []string{"b"}, 2},
		{"the first two", func() *critest.Fault { return critest.On("CreateContainer").Times(2).Fail(codes.Unknown, "disk full") }, []string{"a", "b"}, 1},
		{"one by name", func() *critest.Fault {
			return critest.On("CreateContainer").Of("web/c").Fail(codes.Unknown, "disk full")
		}, []string{"c"}, 2},
		{"a pod's", func() *critest.Fault {
			return critest.On(critest.Changes).Of("web").Nth(3).Fail(codes.Unknown, "disk full")
		}, []string{"c"}, 2},
		{"another pod's", func() *critest.Fault { return critest.On("CreateContainer").Of("db").Fail(codes.Unknown, "disk full") }, nil, 3},
		{"another method", func() *critest.Fault { return critest.On("StartContainer").Fail(codes.Unknown, "disk full") }, nil, 3},
		{"answer lost", func() *critest.Fault { return critest.On(critest.Any).Nth(1).LoseAnswer() }, []string{"a"}, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
				p := newPod(t, c, "web")
				r.Fault(row.fault())
				if failed := create(p, "a", "b", "c"); !slices.Equal(failed, row.failed) {
					t.Errorf("failed %v, want %v", failed, row.failed)
				}
				if made := len(r.Containers()); made != row.made {
					t.Errorf("made %d, want %d", made, row.made)
				}
				if n := r.Count("CreateContainer"); n != 3 {
					t.Errorf("counted %d calls, want 3", n)
				}
			})
		})
	}
}

func TestHooksRunAtTheirMoment(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		before, after := -1, -1
		r.Fault(critest.On("RunPodSandbox").
			Before(func() { before = len(r.Sandboxes()) }).
			After(func() { after = len(r.Sandboxes()) }))
		newPod(t, c, "web")
		if before != 0 || after != 1 {
			t.Errorf("sandboxes before %d, after %d, want 0 and 1", before, after)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r.Fault(critest.On("CreateContainer").Before(cancel))
		p := newPod(t, c, "db")
		if _, err := p.create(ctx, "main", 0); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want canceled", err)
		}
		synctest.Wait()
		if n := len(r.Containers()); n != 0 {
			t.Errorf("%d containers though the caller was gone before", n)
		}
	})
}

func TestHangs(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		fault := r.Fault(critest.On("StopPodSandbox").Hang())
		p := newPod(t, c, "web")
		done := make(chan error)
		go func() { done <- c.StopSandbox(t.Context(), p.sandbox) }()
		<-fault.Struck()
		if s, _ := r.Sandbox("web"); !s.Ready {
			t.Error("stopped though the call hangs")
		}
		fault.Release()
		if err := <-done; err != nil {
			t.Error(err)
		}

		r.Fault(critest.On("RemovePodSandbox").HangAnswer())
		began := time.Now()
		err := c.RemoveSandbox(t.Context(), p.sandbox)
		wantError(t, err, "RemovePodSandbox "+p.sandbox[:13]+": no answer within 2m0s")
		if took := time.Since(began); took != c.Timeouts.Remove {
			t.Errorf("took %s, want %s", took, c.Timeouts.Remove)
		}
		if len(r.Sandboxes()) != 0 {
			t.Error("not carried out")
		}
	})
}

func TestDoubleRunningRemembers(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		p := newPod(t, c, "web")
		p.start("main")
		if d := r.DoubleRunning(); len(d) != 0 {
			t.Errorf("doubles %v, want none", d)
		}
		id, err := p.create(t.Context(), "main", 1)
		if err == nil {
			err = c.StartContainer(t.Context(), id)
		}
		if err != nil {
			t.Fatal(err)
		}
		p.config = &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Namespace: "default", Name: "web", Uid: "other"}}
		other, err := c.RunSandbox(t.Context(), p.config, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.RemoveSandbox(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		r.Exit(id, 0)
		d := r.DoubleRunning()
		if len(d) != 2 || !strings.HasPrefix(d[0], "container default/web/main: ") || !strings.HasPrefix(d[1], "pod default/web: ") {
			t.Errorf("doubles %q, want the container and the pod", d)
		}
	})
}

func TestEventsTellTheStory(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		var story []string
		ended := make(chan error, 1)
		go func() {
			ended <- c.Events(ctx, "", func(e *rt.ContainerEventResponse) {
				kind := strings.TrimSuffix(strings.TrimPrefix(e.ContainerEventType.String(), "CONTAINER_"), "_EVENT")
				who := "sandbox"
				for _, s := range e.ContainersStatuses {
					if s.Id == e.ContainerId {
						who = s.Metadata.Name + " " + describe(s)
					}
				}
				if e.ContainerId != e.PodSandboxStatus.Id && who == "sandbox" {
					who = "container"
				}
				story = append(story, kind+" "+who)
			})
		}()
		synctest.Wait()
		p := newPod(t, c, "web")
		p.start("main")
		r.Exit("main", 2)
		r.DropEvents(1)
		r.RemoveContainerBehindBack("main")
		p.start("main")
		if err := c.RemoveSandbox(t.Context(), p.sandbox); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := []string{
			"CREATED sandbox", "STARTED sandbox",
			"CREATED main CONTAINER_CREATED 0 ", "STARTED main CONTAINER_RUNNING 0 ", "STOPPED main CONTAINER_EXITED 2 Error",
			"CREATED main CONTAINER_CREATED 0 ", "STARTED main CONTAINER_RUNNING 0 ", "STOPPED main CONTAINER_EXITED 137 Error",
			"STOPPED sandbox", "DELETED container", "DELETED sandbox",
		}
		if !slices.Equal(story, want) {
			t.Errorf("story\n%s\nwant\n%s", strings.Join(story, "\n"), strings.Join(want, "\n"))
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want canceled", err)
		}
	})
}

func TestEventStreamsEnd(t *testing.T) {
	for _, row := range []struct {
		name  string
		cause func(r *critest.Runtime)
		is    func(error) bool
	}{
		{"dropped", (*critest.Runtime).DropStreams, cri.Unavailable},
		{"runtime down", (*critest.Runtime).Stop, cri.Unavailable},
		{"never there", nil, cri.Unimplemented},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
				if row.cause == nil {
					r.LikeContainerd16()
				}
				ended := make(chan error, 1)
				go func() { ended <- c.Events(t.Context(), "", func(*rt.ContainerEventResponse) {}) }()
				synctest.Wait()
				if row.cause != nil {
					if n := r.Subscribers(); n != 1 {
						t.Fatalf("%d subscribers, want 1", n)
					}
					row.cause(r)
				}
				if err := <-ended; !row.is(err) {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
}

func TestImages(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		r.OnPull("slow", time.Minute, nil)
		r.OnPull("", 0, errors.New("connection refused"))
		busybox := &rt.ImageSpec{Image: "busybox"}
		if image, err := c.Image(t.Context(), busybox); image != nil || err != nil {
			t.Errorf("absent: %v, %v", image, err)
		}
		_, err := c.PullImage(t.Context(), busybox, nil, nil)
		wantError(t, err, `PullImage busybox: failed to pull and unpack image "docker.io/library/busybox:latest": connection refused`)
		_, err = c.PullImage(t.Context(), &rt.ImageSpec{Image: "Bad Name"}, nil, nil)
		wantError(t, err, "invalid reference format")
		began := time.Now()
		ref, err := c.PullImage(t.Context(), &rt.ImageSpec{Image: "slow"}, nil, nil)
		if err != nil || time.Since(began) != time.Minute {
			t.Errorf("slow: %v after %s", err, time.Since(began))
		}
		image, err := c.Image(t.Context(), &rt.ImageSpec{Image: ref})
		if err != nil || !slices.Equal(image.GetRepoTags(), []string{"docker.io/library/slow:latest"}) {
			t.Errorf("by its id: %v, %v", image, err)
		}
		p := newPod(t, c, "web")
		_, err = c.CreateContainer(t.Context(), p.sandbox, &rt.ContainerConfig{Metadata: &rt.ContainerMetadata{Name: "x"}, Image: busybox}, p.config)
		wantError(t, err, `CreateContainer default/web/x: failed to resolve image "busybox": not found`)
		if _, err := p.create(t.Context(), "x", 0); err != nil {
			t.Errorf("the name was not given back: %v", err)
		}
	})
}

func TestLogsAreWrittenWhereTheirFolderIs(t *testing.T) {
	dir := t.TempDir()
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		r.Program("main", critest.Exits(0).Logs("one", "two"))
		p := newPod(t, c, "web")
		p.config.LogDirectory = dir
		p.config.Metadata.Uid = "logs"
		p.sandbox, _ = c.RunSandbox(t.Context(), p.config, "")
		p.start("main")
	})
	text, err := os.ReadFile(filepath.Join(dir, "main.log"))
	if err != nil || strings.Count(string(text), " stdout F ") != 2 || !strings.HasSuffix(string(text), "two\n") {
		t.Errorf("log %q, %v", text, err)
	}
}
