package critest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
	"monopod/cri/critest"
)

func TestADirectConnectionIsCutLikeASocket(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		fault := r.Fault(critest.On("Version").Hang())
		cut := make(chan error)
		go func() { _, err := c.Version(t.Context()); cut <- err }()
		<-fault.Struck()
		r.Stop()
		if err := <-cut; !cri.Unavailable(err) {
			t.Errorf("in flight: %v, want unavailable", err)
		}
		if _, err := c.Status(t.Context()); !cri.Unavailable(err) {
			t.Errorf("while it is down: %v, want unavailable", err)
		}
		if err := c.Events(t.Context(), "", nil); !cri.Unavailable(err) {
			t.Errorf("events while it is down: %v, want unavailable", err)
		}
		r.Resume()
		if _, err := c.Status(t.Context()); err != nil {
			t.Errorf("after its return: %v", err)
		}
		if n := r.Count("Status"); n != 1 {
			t.Errorf("%d calls arrived, want 1", n)
		}
	})
}

func TestADelayedCallIsCarriedOutLater(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		r.Fault(critest.On("RunPodSandbox").Delay(time.Minute))
		began := time.Now()
		newPod(t, c, "web")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("took %s, want a minute", took)
		}
	})
}

func TestCallsAreRecorded(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		r.Fault(critest.On("CreateContainer").Fail(codes.Unknown, "disk full"))
		p := newPod(t, c, "web")
		if _, err := p.create(t.Context(), "main", 0); err == nil {
			t.Error("created in spite of the fault")
		}
		calls := r.Calls()
		if len(calls) != 2 || calls[0].Method != "RunPodSandbox" || !calls[0].Done || calls[0].Err != nil {
			t.Fatalf("calls %+v", calls)
		}
		q, ok := calls[1].Request.(*rt.CreateContainerRequest)
		if !ok || q.Config.Metadata.Name != "main" || status.Code(calls[1].Err) != codes.Unknown {
			t.Errorf("second call %+v", calls[1])
		}
		r.ForgetCalls()
		if n := len(r.Calls()); n != 0 {
			t.Errorf("%d calls after all were forgotten", n)
		}
	})
}

func TestListsFilter(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		service := rt.NewRuntimeServiceClient(r.Conn())
		web, db := newPod(t, c, "web"), newPod(t, c, "db")
		running, ended := web.start("main"), db.start("main")
		r.Exit(ended, 0)
		r.KillSandbox("db")
		ready := &rt.PodSandboxStateValue{State: rt.PodSandboxState_SANDBOX_READY}
		for _, row := range []struct {
			name   string
			filter *rt.PodSandboxFilter
			want   []string
		}{
			{"all", nil, []string{web.sandbox, db.sandbox}},
			{"id", &rt.PodSandboxFilter{Id: db.sandbox}, []string{db.sandbox}},
			{"state", &rt.PodSandboxFilter{State: ready}, []string{web.sandbox}},
			{"both", &rt.PodSandboxFilter{Id: db.sandbox, State: ready}, nil},
		} {
			var got []string
			list, err := service.ListPodSandbox(t.Context(), &rt.ListPodSandboxRequest{Filter: row.filter})
			for _, s := range list.GetItems() {
				got = append(got, s.Id)
			}
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("sandboxes by %s: %v, %v, want %v", row.name, got, err, row.want)
			}
		}
		for _, row := range []struct {
			name   string
			filter *rt.ContainerFilter
			want   []string
		}{
			{"nothing", nil, []string{running, ended}},
			{"id", &rt.ContainerFilter{Id: ended}, []string{ended}},
			{"sandbox", &rt.ContainerFilter{PodSandboxId: web.sandbox}, []string{running}},
			{"state", &rt.ContainerFilter{State: &rt.ContainerStateValue{State: rt.ContainerState_CONTAINER_EXITED}}, []string{ended}},
		} {
			var got []string
			list, err := service.ListContainers(t.Context(), &rt.ListContainersRequest{Filter: row.filter})
			for _, c := range list.GetContainers() {
				got = append(got, c.Id)
			}
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("containers by %s: %v, %v, want %v", row.name, got, err, row.want)
			}
		}
	})
}

func TestRunningContainersCanBeWorkedOn(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		service, ctx := rt.NewRuntimeServiceClient(r.Conn()), t.Context()
		p := newPod(t, c, "web")
		id := p.start("main")
		shares := &rt.LinuxContainerResources{CpuShares: 512}
		if _, err := service.UpdateContainerResources(ctx, &rt.UpdateContainerResourcesRequest{ContainerId: id, Linux: shares}); err != nil {
			t.Error(err)
		}
		if _, err := service.ReopenContainerLog(ctx, &rt.ReopenContainerLogRequest{ContainerId: id}); err != nil {
			t.Error(err)
		}
		if got, _ := r.Container("web/main"); got.Resources.GetCpuShares() != 512 || got.Reopened != 1 {
			t.Errorf("resources %v, reopened %d times, want 512 shares and once", got.Resources, got.Reopened)
		}
		stats, err := service.ListPodSandboxStats(ctx, &rt.ListPodSandboxStatsRequest{})
		if err != nil || len(stats.GetStats()) != 1 || len(stats.Stats[0].Linux.Containers) != 1 {
			t.Errorf("sandbox stats %v, %v, want the pod with its container", stats, err)
		}
		r.Exit("main", 0)
		if _, err := service.ReopenContainerLog(ctx, &rt.ReopenContainerLogRequest{ContainerId: id}); status.Code(err) != codes.Unknown {
			t.Errorf("log of an exited container reopened: %v", err)
		}
		if list, err := service.ListContainerStats(ctx, &rt.ListContainerStatsRequest{}); err != nil || len(list.GetStats()) != 0 {
			t.Errorf("stats of an exited container: %v, %v", list, err)
		}
	})
}

func TestExecDoesAsTold(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		service := rt.NewRuntimeServiceClient(r.Conn())
		p := newPod(t, c, "web")
		id := p.start("main")
		r.OnExec(func(ctx context.Context, c critest.Container, command []string) (string, int32, error) {
			switch command[0] {
			case "sleep":
				<-ctx.Done()
				return "", 0, nil
			case "false":
				return "", 1, nil
			case "broken":
				return "", 0, errors.New("no such file")
			}
			return c.Name, 0, nil
		})
		for _, row := range []struct {
			command, stdout string
			exitCode        int32
			code            codes.Code
		}{
			{"name", "main", 0, codes.OK},
			{"false", "", 1, codes.OK},
			{"broken", "", 0, codes.Unknown},
			{"sleep", "", 0, codes.DeadlineExceeded},
		} {
			a, err := service.ExecSync(t.Context(), &rt.ExecSyncRequest{ContainerId: id, Cmd: []string{row.command}, Timeout: 5})
			if string(a.GetStdout()) != row.stdout || a.GetExitCode() != row.exitCode || status.Code(err) != row.code {
				t.Errorf("%s: %v, %v, want %q %d %s", row.command, a, err, row.stdout, row.exitCode, row.code)
			}
		}
		r.Exit("main", 0)
		_, err := service.ExecSync(t.Context(), &rt.ExecSyncRequest{ContainerId: id, Cmd: []string{"name"}})
		wantError(t, err, "container is in CONTAINER_EXITED state")
	})
}

func TestRuntimeConfigTellsTheCgroupDriver(t *testing.T) {
	r := critest.New(t)
	service := rt.NewRuntimeServiceClient(r.Conn())
	r.SetCgroupDriver(rt.CgroupDriver_SYSTEMD)
	if a, err := service.RuntimeConfig(t.Context(), &rt.RuntimeConfigRequest{}); err != nil || a.Linux.CgroupDriver != rt.CgroupDriver_SYSTEMD {
		t.Errorf("%v, %v, want systemd", a, err)
	}
	r.LikeContainerd16()
	if _, err := service.RuntimeConfig(t.Context(), &rt.RuntimeConfigRequest{}); !cri.Unimplemented(err) {
		t.Errorf("error %v, want unimplemented", err)
	}
}

func TestImagesAreListedAndRemoved(t *testing.T) {
	r := critest.New(t)
	service, ctx := rt.NewImageServiceClient(r.Conn()), t.Context()
	digest := "quay.io/x/y@sha256:0123456789012345678901234567890123456789012345678901234567890123"
	r.AddImage("busybox", "busybox:latest", "quay.io/x/y:1", digest)
	want := []string{"docker.io/library/busybox:latest", "quay.io/x/y:1", digest}
	if got := r.Images(); !slices.Equal(got, want) {
		t.Errorf("images %v, want %v", got, want)
	}
	one, err := service.ListImages(ctx, &rt.ListImagesRequest{Filter: &rt.ImageFilter{Image: &rt.ImageSpec{Image: "busybox"}}})
	if err != nil || len(one.Images) != 1 {
		t.Fatalf("busybox: %v, %v", one, err)
	}
	fs, err := service.ImageFsInfo(ctx, &rt.ImageFsInfoRequest{})
	if err != nil || fs.ImageFilesystems[0].UsedBytes.Value != 3<<20 {
		t.Errorf("file system %v, %v, want 3 MiB", fs, err)
	}
	for range 2 {
		if _, err := service.RemoveImage(ctx, &rt.RemoveImageRequest{Image: &rt.ImageSpec{Image: one.Images[0].Id}}); err != nil {
			t.Error(err)
		}
	}
	if got := r.Images(); !slices.Equal(got, want[1:]) {
		t.Errorf("images %v, want %v", got, want[1:])
	}
}

func TestWaitSeesEachChange(t *testing.T) {
	bubble(t, func(t *testing.T, r *critest.Runtime, c *cri.Client) {
		r.Program("main", critest.ExitsAfter(9*time.Second, 0))
		p := newPod(t, c, "web")
		id, err := p.create(t.Context(), "main", 0)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if err := c.StartContainer(t.Context(), id); err != nil {
				t.Error(err)
			}
		}()
		r.Wait(t, func(r *critest.Runtime) bool { return slices.Equal(r.Running(), []string{"default/web/main"}) })
		r.Wait(t, func(r *critest.Runtime) bool { return len(r.Running()) == 0 })
		synctest.Wait()
	})
}
