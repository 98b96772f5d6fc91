package worker

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/events"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/volume"
)

// madeSandbox is the sandbox that containers are created in.
type madeSandbox struct {
	id     string
	config *rt.PodSandboxConfig
	ips    []string // as containers see them: the host's for host-network pods
}

// slot waits for one of the node's slots.
func slot(ctx context.Context, slots chan struct{}) (release func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (w *Worker) createSandbox(ctx, firm context.Context, s *plan.Facts, a plan.Action) error {
	if err := w.ownUID(s); err != nil {
		return err
	}
	if a.Attempt > 0 {
		w.Events.Record(events.About(s.Pod.Pod), v1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
	}
	w.recordDNS(s.Pod.Pod)
	handler, err := podspec.RuntimeHandler(s.Pod.Pod, w.RuntimeClasses)
	if err != nil {
		return err
	}
	config, err := w.prepareSandbox(s.Pod.Pod, a.Attempt)
	if err != nil {
		return err
	}
	release, err := slot(ctx, w.Starts)
	if err != nil {
		return err
	}
	defer release()
	start := time.Now()
	id, err := w.Cri.RunSandbox(firm, config, handler)
	w.Metrics.Sandbox(handler, start, err)
	if err != nil {
		return err
	}
	m := &madeSandbox{id: id, config: config, ips: w.Machine.Now().HostIPs}
	if !s.Pod.Spec.HostNetwork {
		st, err := w.Cri.SandboxStatus(firm, id)
		if err != nil {
			w.Events.Record(events.About(s.Pod.Pod), v1.EventTypeWarning, "FailedPodSandBoxStatus", "Unable to get pod sandbox status: "+err.Error())
			return err
		}
		m.ips = pleg.Addresses(st)
	}
	w.sandbox = m
	return nil
}

// forgetSandbox drops the sandbox that an earlier pass created, unless it is
// still the pod's newest. Afterwards w.sandbox is at least as new as anything
// observed.
func (w *Worker) forgetSandbox(s *plan.Facts) {
	if s.Pod != nil && w.sandbox != nil {
		if b := s.Instance().Sandbox(); b != nil && b.ID == w.sandbox.id {
			return
		}
	}
	w.sandbox = nil
}

// inSandbox returns the sandbox for the pod's containers, which this pass, an
// earlier one or a previous agent created. One of this pass wins over the one
// observed before it.
func (w *Worker) inSandbox(s *plan.Facts) (*madeSandbox, error) {
	if w.sandbox != nil {
		return w.sandbox, nil
	}
	b := s.Instance().Sandbox()
	if b == nil {
		return nil, errors.New("the pod has no sandbox")
	}
	config, err := w.prepareSandbox(s.Pod.Pod, b.Attempt)
	if err != nil {
		return nil, err
	}
	m := &madeSandbox{id: b.ID, config: config, ips: b.IPs}
	if b.HostNetwork {
		m.ips = w.Machine.Now().HostIPs
	}
	return m, nil
}

// startContainer creates and starts a container whose image is present.
func (w *Worker) startContainer(ctx, firm context.Context, s *plan.Facts, a plan.Action) error {
	c := podspec.FindContainer(s.Pod.Pod, a.Name)
	m, err := w.inSandbox(s)
	if err != nil {
		return plan.Because("CreateContainerError", err)
	}
	img, err := w.fetched(ctx, s.Pod.Pod, c, m, w.fetches[a.Name])
	if err != nil {
		return err
	}
	config, err := w.prepareContainer(firm, s, a, c, m, img)
	if err != nil {
		return plan.Because("CreateContainerConfigError", err)
	}
	release, err := slot(ctx, w.Starts)
	if err != nil {
		return err
	}
	defer release()
	id, err := w.Cri.CreateContainer(firm, m.id, config, m.config)
	if err != nil {
		return plan.Because("CreateContainerError", podspec.NoImageVolumes(config, err))
	}
	about := events.AboutContainer(s.Pod.Pod, a.Name)
	w.Events.Record(about, v1.EventTypeNormal, "Created", "Container created")
	if err := w.Cri.StartContainer(firm, id); err != nil {
		return plan.Because("RunContainerError", err)
	}
	w.Events.Record(about, v1.EventTypeNormal, "Started", "Container started")
	w.linkLog(a, id)
	return nil
}

// resumeContainer starts a container that was created before.
func (w *Worker) resumeContainer(ctx, firm context.Context, a plan.Action) error {
	release, err := slot(ctx, w.Starts)
	if err != nil {
		return err
	}
	defer release()
	if err := w.Cri.StartContainer(firm, a.ID); err != nil {
		return plan.Because("RunContainerError", err)
	}
	w.Events.Record(w.about(a.UID, a.Name), v1.EventTypeNormal, "Started", "Container started")
	w.linkLog(a, a.ID)
	return nil
}

// prepareContainer makes the files that an attempt of a container needs, and
// returns its config for the runtime.
func (w *Worker) prepareContainer(ctx context.Context, s *plan.Facts, a plan.Action, c *v1.Container, m *madeSandbox, img *images) (*rt.ContainerConfig, error) {
	pod := s.Pod.Pod
	n := w.Machine.Now()
	mounts, err := w.setUpVolumes(ctx, pod, n)
	if err != nil {
		return nil, err
	}
	if err := w.MakeContainerLogDir(pod, a.Name); err != nil {
		return nil, err
	}
	in := podspec.Input{Attempt: a.Attempt, Image: img.ref, BackOff: a.BackOff, PodIPs: m.ips, Volumes: mounts, VolumeImages: img.volumes}
	in.ImageUID, in.ImageUsername = podspec.ImageUser(img.image)
	if in.SubPaths, err = w.bindSubPaths(pod, c, in, n); err != nil {
		return nil, err
	}
	if in.HostsPath, err = w.writeHosts(pod, m.ips); err != nil {
		return nil, err
	}
	w.sweepTerminationLogs(s.Instance(), a.UID, a.Name)
	if in.TerminationLogPath, err = volume.TerminationLog(w.Root.Dir, a.UID, a.Name); err != nil {
		w.Log.Warn("container has no termination log", "container", a.Name, "err", err)
	}
	in.RecursiveReadOnly = w.recursiveReadOnly(pod)
	config, err := podspec.ContainerConfig(pod, c, in, n)
	if err == nil {
		withUsers(config, m)
	}
	return config, err
}

// setUpVolumes sets up the pod's volumes, for one container at a time.
func (w *Worker) setUpVolumes(ctx context.Context, p *v1.Pod, n *podspec.Host) (map[string]volume.Mount, error) {
	w.settingUp.Lock()
	defer w.settingUp.Unlock()
	in := podspec.VolumeInput(p, n)
	in.Observe = w.observeVolume
	return volume.SetUp(ctx, w.Root.Dir, p, in)
}

// bindSubPaths makes the parts of volumes that the container mounts by subPath,
// and returns their host paths by index in volumeMounts. For an image volume it
// is the path in the image.
func (w *Worker) bindSubPaths(pod *v1.Pod, c *v1.Container, in podspec.Input, n *podspec.Host) (map[int]string, error) {
	paths, err := podspec.SubPaths(pod, c, in, n)
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	out := map[int]string{}
	for k, path := range paths {
		m := &c.VolumeMounts[k]
		if in.VolumeImages[m.Name] != "" {
			out[k] = path // the runtime finds it in the image
			continue
		}
		out[k], err = volume.SubPath(w.Root.Dir, string(pod.UID), volume.SubPathMount{
			Volume: m.Name, Container: c.Name, Index: k, Mount: in.Volumes[m.Name], Path: path,
			Shared: m.MountPropagation != nil && *m.MountPropagation == v1.MountPropagationBidirectional})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
