package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/events"
	"monopod/agent/hold"
	"monopod/agent/print"
	"monopod/agent/status"
)

// PodOfEvents returns the pod that a name means, which may be gone already.
func (k *Known) PodOfEvents(name, namespace string, all []v1.Event) (string, error) {
	pods, there := slices.Clone(k.Pods), map[string]bool{}
	for i := range pods {
		there[pods[i].Namespace+"/"+pods[i].Name] = true
	}
	for i := range all {
		if key := PodOf(&all[i]); key != "" && !there[key] {
			there[key] = true
			pods = append(pods, *podStub(&all[i]))
		}
	}
	p, err := FindPod(pods, name, namespace)
	if err != nil {
		return "", err
	}
	return p.Namespace + "/" + p.Name, nil
}

// Events returns the events of a pod, "namespace/name", or all for "", the latest last.
func (k *Known) Events(ctx context.Context, pod string) ([]v1.Event, error) {
	if !k.Down() {
		var list v1.EventList
		err := GetJSON(ctx, k.from.Socket, "/events?pod="+url.QueryEscape(pod), &list)
		return list.Items, err
	}
	all, err := events.Read(filepath.Join(k.from.Root, "status", "events.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(all, func(e v1.Event) bool { return pod != "" && PodOf(&e) != pod }), err
}

// PodOf returns which pod an event is about, "namespace/name", "" if none.
func PodOf(e *v1.Event) string {
	if e.InvolvedObject.Kind != "Pod" {
		return ""
	}
	return e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
}

// podStub is a pod with what an event about it has.
func podStub(e *v1.Event) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name, p.Spec.NodeName = e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Source.Host
	return p
}

// DownError is ErrDown where no agent answers.
func (k *Known) DownError() error {
	if k.Down() {
		return ErrDown
	}
	return nil
}

// Source is where commands get pods: from the agent behind the socket, or if none answers from
// what one has left under its root folder.
type Source struct {
	Socket string
	Root   string // "": only a running agent counts
}

// Known is the content of a Source.
type Known struct {
	Pods      []v1.Pod
	Manifests status.Manifests
	Runtime   status.Runtime // of the previous agent only the endpoint
	Seen      time.Time      // when the previous agent gave its last sign of life; zero: the agent answers
	Changed   time.Time      // when its report changed last; zero: it left no heartbeat, and this is Seen
	NodeHeld  string         // if no agent runs: why and until when the node is held; "": it is not
	from      Source
}

// Down reports whether no agent answers.
func (k *Known) Down() bool { return !k.Seen.IsZero() }

// Pods requests only the pods from the agent, or reads the previous one's.
func (s Source) Pods(ctx context.Context) (*Known, error) {
	var list v1.PodList
	if err := GetJSON(ctx, s.Socket, "/pods", &list); err != nil {
		return s.previous(err)
	}
	return &Known{Pods: list.Items, from: s}, nil
}

// All requests everything that ps shows, or reads what the previous agent reported.
func (s Source) All(ctx context.Context) (*Known, error) {
	k, err := s.Pods(ctx)
	if err != nil || !k.Seen.IsZero() {
		return k, err
	}
	if err := GetJSON(ctx, s.Socket, "/manifests", &k.Manifests); err != nil {
		return nil, err
	}
	return k, GetJSON(ctx, s.Socket, "/runtime", &k.Runtime)
}

// previous returns what the previous agent reported, if err is that none runs; err if that is
// missing, too.
func (s Source) previous(err error) (*Known, error) {
	if s.Root == "" || !notRunning(err) {
		return nil, err
	}
	k, failed := LastKnown(filepath.Join(s.Root, "status"))
	switch {
	case errors.Is(failed, fs.ErrNotExist):
		return nil, err
	case errors.Is(failed, fs.ErrPermission):
		return nil, fmt.Errorf("%w; what it reported in %s is for root only", err, s.Root)
	case failed != nil:
		return nil, fmt.Errorf("%w; what it reported is no use: %w", err, failed)
	}
	k.from = s
	k.markHeld(hold.Recorded(s.Root))
	return k, nil
}

// markHeld marks the pods that are held, as an agent does in its answers.
func (k *Known) markHeld(now hold.State) {
	for i := range k.Pods {
		p := &k.Pods[i]
		if h, held := now.Held[p.Namespace+"/"+p.Name]; held {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, status.AnnHeld, h.Text())
		}
	}
	if now.Node != nil {
		k.NodeHeld = now.Node.Text()
	}
}

// notRunning distinguishes an agent that does not run from one that does not answer.
func notRunning(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
}

// IsDown reports whether an error is that no agent runs.
func IsDown(err error) bool {
	var about *FlagError
	return errors.Is(err, ErrDown) || errors.As(err, &about) && about.Flag == "socket" && notRunning(about.Err)
}

// LastKnown reads the reports in a status folder.
func LastKnown(dir string) (*Known, error) {
	files, err := os.ReadDir(filepath.Join(dir, "pods"))
	if err != nil {
		return nil, err
	}
	k := &Known{}
	for _, f := range files { // sorted by name, as the agent sorts
		if strings.HasPrefix(f.Name(), ".") || !strings.HasSuffix(f.Name(), ".json") {
			continue
		}
		var p v1.Pod
		err := k.read(filepath.Join(dir, "pods", f.Name()), &p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p.TypeMeta = metav1.TypeMeta{} // as in the endpoint's list
		k.Pods = append(k.Pods, p)
	}
	err = k.read(filepath.Join(dir, "manifests.json"), &k.Manifests)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var r status.Runtime
	if k.read(filepath.Join(dir, "runtime.json"), &r) == nil { // a hint, which an older agent did not leave
		k.Runtime.Endpoint = r.Endpoint
	}
	k.readBeat(filepath.Join(dir, "node.json"))
	if k.Seen.IsZero() {
		if fi, err := os.Stat(filepath.Join(dir, "pods")); err == nil {
			k.Seen = fi.ModTime()
		}
	}
	return k, err
}

// readBeat reads the previous agent's last heartbeat, which continues while nothing changes.
func (k *Known) readBeat(path string) {
	var node v1.Node
	seen := k.Seen
	if k.read(path, &node) != nil {
		return
	}
	k.Seen, k.Changed = seen, seen
	for _, c := range node.Status.Conditions {
		if c.LastHeartbeatTime.After(k.Seen) {
			k.Seen = c.LastHeartbeatTime.Time
		}
	}
}

// read decodes a report, and records when it was written. An empty file, which a power cut leaves
// of one that was new, counts as missing.
func (k *Known) read(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(bytes.Trim(data, "\x00")) == 0 {
		return fmt.Errorf("%s is empty: %w", path, fs.ErrNotExist)
	}
	if json.Unmarshal(data, v) != nil {
		return fmt.Errorf("%s is cut off, or no report of a monopod", path)
	}
	if fi, err := os.Stat(path); err == nil && fi.ModTime().After(k.Seen) {
		k.Seen = fi.ModTime()
	}
	return nil
}

// ErrDown is that no agent runs: ps printed the last report, forget could not send its request.
var ErrDown = errors.New("the agent does not run")

// DownWords returns the sentence that no agent runs, since when, and how old its reports are.
func (k *Known) DownWords(socket string, now time.Time) string {
	text, ago := fmt.Sprintf("the agent does not run (no process answers on %s): ", socket), print.Ago(k.Seen, now)
	switch {
	case !print.KnownTime(k.Seen, now):
		return text + "this is what it reported last, at a time that is not known"
	case k.Changed.IsZero(): // it left no heartbeat
		return text + fmt.Sprintf("this is what it reported last, %s ago", ago)
	case k.Seen.Sub(k.Changed) < time.Minute:
		return text + fmt.Sprintf("its last sign of life was %s ago, and this is what it reported last", ago)
	}
	return text + fmt.Sprintf("its last sign of life was %s ago, and this is what it reported last, which had not changed for %s then", ago, print.Ago(k.Changed, k.Seen))
}
