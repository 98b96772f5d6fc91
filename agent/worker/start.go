package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podimages"
	"monopod/agent/podspec"
)

// madeSandbox is the sandbox that containers are created in.
type madeSandbox struct {
	id     string
	config *rt.PodSandboxConfig
	ips    []string             // as containers see them: the host's for host-network pods
	status *rt.PodSandboxStatus // as it was made; nil: it was not asked for
}

// starter creates the desired instance's sandbox and starts its containers.
type starter struct {
	pod     *pod
	fetches *podimages.Set
	made    *madeSandbox // the desired instance's sandbox, if this process created it
}

// createSandbox creates a sandbox when there is a slot. ctx ends the wait for that,
// firm the calls.
func (t *starter) createSandbox(ctx, firm context.Context, s *plan.Facts, k *task) (m *madeSandbox, err error) {
	if err := t.pod.ownUID(s); err != nil {
		return nil, err
	}
	if k.action.Attempt > 0 {
		t.pod.shared.Events.Record(events.About(s.Pod.Pod), v1.EventTypeNormal, "SandboxChanged", message.Fixed("Pod sandbox changed, it will be killed and re-created."))
	}
	t.pod.events.RecordDNS(s.Pod.Pod)
	handler, err := podspec.RuntimeHandler(s.Pod.Pod, t.pod.shared.RuntimeClasses)
	if err != nil {
		return nil, err
	}
	config, err := t.prepareSandbox(s.Pod.Pod, k.action.Attempt)
	if err != nil {
		return nil, err
	}
	err = k.inSlot(ctx, t.pod.shared.Sandboxes, func() error {
		m, err = t.runSandbox(firm, s, config, handler)
		return err
	})
	return m, err
}

func (t *starter) runSandbox(ctx context.Context, s *plan.Facts, config *rt.PodSandboxConfig, handler string) (*madeSandbox, error) {
	start := time.Now()
	id, err := t.pod.shared.Cri.RunSandbox(ctx, config, handler)
	t.pod.shared.Metrics.Sandbox(handler, start, err)
	if err != nil {
		return nil, err
	}
	m := &madeSandbox{id: id, config: config, ips: t.pod.shared.Disk.Machine.Now().HostIPs}
	if !s.Pod.Spec.HostNetwork {
		st, err := t.pod.shared.Cri.SandboxStatus(ctx, id)
		if err != nil {
			t.pod.shared.Events.Record(events.About(s.Pod.Pod), v1.EventTypeWarning, "FailedPodSandBoxStatus", message.Of("Unable to get pod sandbox status: %s", message.Private(err.Error())))
			return nil, err
		}
		m.ips, m.status = pleg.Addresses(st), st
	}
	return m, nil
}

// forgetSandbox drops the sandbox that an earlier pass created, unless it is
// still the pod's newest. Afterwards t.made is at least as new as anything
// observed.
func (t *starter) forgetSandbox(s *plan.Facts) {
	if s.Pod != nil && t.made != nil {
		if b := s.Instance().Sandbox(); b != nil && b.ID == t.made.id {
			return
		}
	}
	t.made = nil
}

// inSandbox returns the sandbox for the pod's containers, which this pass, an
// earlier one or a previous agent created. One of this pass wins over the one
// observed before it.
func (t *starter) inSandbox(s *plan.Facts) (*madeSandbox, error) {
	if t.made != nil {
		return t.made, nil
	}
	b := s.Instance().Sandbox()
	if b == nil {
		return nil, errors.New("the pod has no sandbox")
	}
	config, err := t.prepareSandbox(s.Pod.Pod, b.Attempt)
	if err != nil {
		return nil, err
	}
	m := &madeSandbox{id: b.ID, config: config, ips: b.IPs}
	if b.HostNetwork {
		m.ips = t.pod.shared.Disk.Machine.Now().HostIPs
	}
	return m, nil
}

// startContainer creates and starts a container in sandbox m with the images that get
// returns. ctx ends the wait for a slot, firm the calls.
func (t *starter) startContainer(ctx, firm context.Context, s *plan.Facts, k *task, m *madeSandbox, get getImages) error {
	a := k.action
	c := podspec.FindContainer(s.Pod.Pod, a.Name)
	img, err := get(ctx, c, m.config)
	if err != nil {
		return err
	}
	config, err := t.prepareContainer(firm, s, a, c, m, img)
	if err != nil {
		return plan.Because("CreateContainerConfigError", err)
	}
	return k.inSlot(ctx, t.pod.shared.Containers, func() error {
		id, err := t.pod.shared.Cri.CreateContainer(firm, m.id, config, m.config)
		if err != nil {
			return plan.Because("CreateContainerError", podspec.NoImageVolumes(config, err))
		}
		t.pod.shared.Events.Record(events.AboutContainer(s.Pod.Pod, a.Name), v1.EventTypeNormal, "Created", message.Fixed("Container created"))
		return t.run(firm, s, a, id, config.Linux.Resources.CpusetCpus)
	})
}

// resumeContainer starts a container that was created before.
func (t *starter) resumeContainer(ctx, firm context.Context, s *plan.Facts, k *task) error {
	return k.inSlot(ctx, t.pod.shared.Containers, func() error { return t.run(firm, s, k.action, k.action.ID, "") })
}

// run starts a container that was created, for these CPUs; "": it is not known for which.
func (t *starter) run(ctx context.Context, s *plan.Facts, a plan.Action, id, cpus string) error {
	if err := t.pod.shared.Cri.StartContainer(ctx, id); err != nil {
		return plan.Because("RunContainerError", err)
	}
	t.pod.shared.Events.Record(events.AboutContainer(s.Pod.Pod, a.Name), v1.EventTypeNormal, "Started", message.Fixed("Container started"))
	t.pod.shared.CPUs.Started(a.UID, a.Name, id, cpus)
	t.pod.files.LinkLog(a.UID, a.Name, a.Attempt, id)
	return nil
}

// prepareContainer makes the files that an attempt of a container needs, and
// returns its config for the runtime.
func (t *starter) prepareContainer(ctx context.Context, s *plan.Facts, a plan.Action, c *v1.Container, m *madeSandbox, img *podimages.Images) (*rt.ContainerConfig, error) {
	pod := s.Pod.Pod
	n := t.pod.shared.Disk.Machine.Now()
	now := t.pod.shared.Disk.Objects.Now() // before the volumes are set up: these may be newer than what is recorded, never older
	mounts, err := t.pod.files.SetUpVolumes(ctx, s.Pod, n)
	if err != nil {
		return nil, err
	}
	if err := t.pod.files.MakeContainerLogDir(pod, a.Name); err != nil {
		return nil, err
	}
	in := podspec.Input{Attempt: a.Attempt, Image: img.Ref, BackOff: a.BackOff, Revision: a.Revision, PodIPs: m.ips, Volumes: mounts, VolumeImages: img.Volumes}
	in.CPUs = t.pod.shared.CPUs.Of(a.UID, a.Name)
	if err := t.giveDevices(ctx, &in, pod, c); err != nil {
		return nil, err
	}
	in.Objects, in.EnvObjects = now, now.EnvOf(pod)[a.Name]
	in.ImageUID, in.ImageUsername = podspec.ImageUser(img.Image)
	in.EnvFiles = t.pod.files.ReadEnvFiles(pod, c)
	if in.SubPaths, err = t.pod.files.BindSubPaths(pod, c, in, n); err != nil {
		return nil, err
	}
	if in.HostsPath, err = t.pod.files.WriteHosts(pod, a.Name, m.ips); err != nil {
		return nil, err
	}
	if in.ResolvPath, err = t.pod.files.WriteResolvConf(pod, a.Name); err != nil {
		return nil, err
	}
	in.TerminationLogPath = t.pod.files.NewTerminationLog(s.Instance(), a.UID, a.Name)
	in.RecursiveReadOnly = t.recursiveReadOnly(pod)
	config, err := podspec.ContainerConfig(pod, c, in, n)
	if err == nil {
		withUsers(config, m)
	}
	return config, err
}

// giveDevices gives a container the devices that it requests.
func (t *starter) giveDevices(ctx context.Context, in *podspec.Input, pod *v1.Pod, c *v1.Container) error {
	given, err := t.pod.shared.Devices.Give(pod, c)
	if err != nil {
		return err
	}
	in.Devices, in.CDIDevices = given.Devices, given.CDI
	if len(given.CDI) == 0 {
		return nil
	}
	return t.checkCDI(ctx, given.CDI[0])
}

// checkCDI returns an error if the runtime would silently make a container without its CDI devices.
func (t *starter) checkCDI(ctx context.Context, name string) error {
	info, err := t.pod.shared.Cri.Info(ctx)
	isContainerd := info.CNIConf != ""
	if err == nil && isContainerd && !info.CDI {
		err = fmt.Errorf("the runtime gives containers no CDI devices, such as %s: use containerd 2, or 1.7 with enable_cdi = true in its configuration", name)
	}
	return err
}

// getImages returns the images of a container; see podimages.Set.Of.
type getImages = func(context.Context, *v1.Container, *rt.PodSandboxConfig) (*podimages.Images, error)

// imagesOf returns the func that gets the images of a container. While another version of the pod
// is prepared, waits or is not recorded yet, those are the images that the container ran: the pull
// for that version may have moved a tag that both have.
func (w *Worker) imagesOf(s *plan.Facts, name string) getImages {
	last, c := s.Instance().Newest(name), podspec.FindContainer(s.Pod.Pod, name)
	isFormer := w.pod.current.Next != nil || w.commit.next.Pod != nil || !s.Unaccepted.IsZero()
	if !isFormer || last == nil || last.Outdated || c == nil {
		return w.fetches.Of(s.Pod.Pod, name)
	}
	return w.fetches.OfRan(s.Pod.Pod, name, podimages.RanBy(c, last.Status))
}

// prefetch starts to pull a pod's images while its sandbox is created.
func (t *starter) prefetch(ctx context.Context, s *plan.Facts, steps [][]plan.Action) {
	if !slices.ContainsFunc(slices.Concat(steps...), func(a plan.Action) bool { return a.Do == plan.DoCreateSandbox }) {
		return
	}
	config, err := podspec.SandboxConfig(s.Pod.Pod, 0, t.pod.shared.Disk.Machine.Now())
	if err == nil { // else the creation of the sandbox reports it
		t.fetches.All(ctx, s.Pod.Pod, config)
	}
}

// awaitImage starts to pull the container's images, unless that runs already.
func (t *starter) awaitImage(ctx context.Context, s *plan.Facts, a plan.Action) error {
	m, err := t.inSandbox(s)
	if err == nil {
		t.fetches.Start(ctx, s.Pod.Pod, podspec.FindContainer(s.Pod.Pod, a.Name), m.config)
	}
	return err
}
