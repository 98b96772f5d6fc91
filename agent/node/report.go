package node

import (
	"context"
	"log/slog"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/devices"
	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/saidonce"
	"monopod/agent/status"
	"monopod/cri"
)

const (
	// NodeEvery is how often the Node is reported (KubeletConfiguration:
	// nodeStatusUpdateFrequency).
	NodeEvery = 10 * time.Second
	// nodeImagesEvery is how often the images are requested from the runtime, as by the kubelet.
	nodeImagesEvery = 30 * time.Second
	// nodeAsk bounds a call to the runtime for the report.
	nodeAsk = 5 * time.Second
)

// Runtime is what a report needs to know of the runtime.
type Runtime interface {
	Up() bool
	State() status.Runtime
	NotReady() []message.Text // why the node is not ready for pods; empty: it is
	Changed() <-chan struct{} // receives when one of these has changed
}

// Reporter writes the Node: its identity, capacity and conditions, and a heartbeat for monitoring.
// The heartbeat is the time of the last turn of the sync loop, so that it stops with the loop.
// Run's goroutine owns it.
type Reporter struct {
	Machine *Node
	Store   *status.Store
	Cri     *cri.Client
	Runtime Runtime
	Down    func() bool // the machine shuts down; nil: it does not
	Devices *devices.Keeper
	Events  *events.Recorder
	Turned  func() time.Time // when the sync loop last turned
	Late    time.Duration    // the greatest age of that time: beyond it the loop counts as stuck and the heartbeat stops
	Port    func() int32     // of the endpoint, 0 without one; nil: there is none
	Log     *slog.Logger
	Info    v1.NodeSystemInfo
	Also    func()        // called after each report: what is to be done now and then, without a wake of its own
	Other   chan struct{} // one slot: settings that the report shows have changed

	Measure func(root, images string) (Signals, error)
	Full    func() (most int, full bool)       // the image disk is fuller than so many percent, and no image can be collected
	Pressed map[v1.NodeConditionType]time.Time // when pressure was last seen

	images   []v1.ContainerImage
	imageDir string    // on the image file system, "" if not known
	asked    time.Time // when both were last read

	conditions []v1.NodeCondition // of the last report
	stuck      bool               // the sync loop is stuck, which was logged
	said       saidonce.Error
}

// Wake makes the reporter report at once. Any goroutine may call it.
func (r *Reporter) Wake() {
	select {
	case r.Other <- struct{}{}:
	default:
	}
}

// Run reports every NodeEvery, when the runtime changes, and at Wake, until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	if last := r.Store.PreviousNode(); last != nil {
		r.conditions = last.Status.Conditions
	}
	tick := time.NewTicker(NodeEvery)
	defer tick.Stop()
	var other chan struct{}
	for { // the first report waits for the runtime: otherwise the node would seem not ready at each start
		select {
		case <-ctx.Done():
			return
		case <-r.Runtime.Changed():
		case <-other:
		case <-tick.C:
		}
		r.report(ctx)
		r.Also()
		other = r.Other
	}
}

// report reports the node unless the sync loop is stuck.
func (r *Reporter) report(ctx context.Context) {
	beat := r.Turned()
	ago := time.Since(beat)
	if stuck := ago > r.Late; stuck != r.stuck {
		r.stuck = stuck
		if stuck {
			r.Log.Error("sync loop is stuck; the node's heartbeat stops", "for", ago.Round(time.Second))
		}
	}
	if r.stuck {
		return
	}
	facts, err := r.Machine.ReadFacts()
	if err != nil {
		r.complain(err)
		return
	}
	r.askImages(ctx)
	seen, err := r.Measure(r.Machine.Cfg.Root, r.imageDir)
	r.complain(err)
	var public message.Book
	r.conditions, public = r.conditionsOf(seen, time.Now(), beat)
	r.Store.SetNodeReport(r.node(facts), public)
}

// complain logs a new error once.
func (r *Reporter) complain(err error) {
	if r.said.IsNew(err) {
		r.Log.Warn("node report is incomplete", "err", err)
	}
}

// node returns the Node to report.
func (r *Reporter) node(f Facts) *v1.Node {
	info := r.Info
	if s := r.Runtime.State(); s.Name != "" {
		info.ContainerRuntimeVersion = s.Name + "://" + s.Version
	}
	n := &v1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: r.Machine.Cfg.NodeName, Labels: f.Labels},
		Status: v1.NodeStatus{
			Capacity: f.Capacity, Allocatable: f.Allocatable, Conditions: r.conditions,
			NodeInfo: info, Images: r.images,
		},
	}
	for _, ip := range r.Machine.Now().HostIPs {
		n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
	}
	n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeHostName, Address: r.Machine.Cfg.NodeName})
	r.addDevices(n)
	if r.Port != nil {
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = r.Port()
	}
	return n
}

// addDevices adds the resources that the settings make of devices.
func (r *Reporter) addDevices(n *v1.Node) {
	if !r.Devices.Counts() {
		return
	}
	n.Status.Capacity, n.Status.Allocatable = maps.Clone(n.Status.Capacity), maps.Clone(n.Status.Allocatable)
	for name, count := range r.Devices.Capacity(n.Status.Allocatable.Pods().Value()) {
		n.Status.Capacity[name], n.Status.Allocatable[name] = count, count
	}
	status.SetDevices(n, r.Devices.List())
}

// askImages requests the images from the runtime every nodeImagesEvery. While it does not answer,
// the report has the last ones.
func (r *Reporter) askImages(ctx context.Context) {
	if !r.Runtime.Up() || !r.asked.IsZero() && time.Since(r.asked) < nodeImagesEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, nodeAsk)
	defer cancel()
	images, err := r.Cri.Images(ctx)
	if err != nil {
		return
	}
	r.images, r.asked = NodeImages(images), time.Now()
	if dir, err := r.Cri.ImageDir(ctx); err == nil {
		r.imageDir = dir
	}
}
