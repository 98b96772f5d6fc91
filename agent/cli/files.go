package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"monopod/agent/events"
	"monopod/agent/status"
)

// source is where reports come from: an agent, or while none answers the files
// that it left.
type source struct {
	socket string
	dir    string // of the files; "": the agent answers
}

// openSource finds out whether the agent answers. If it does not, and has left
// files under root, it says so on notes in one line.
func openSource(ctx context.Context, socket, root string, notes io.Writer, now time.Time) (*source, error) {
	_, err := get(ctx, socket, "/version")
	if err == nil || root == "" || !isDown(err) {
		return &source{socket: socket}, err
	}
	dir := filepath.Join(root, "status")
	last, found := lastWritten(dir)
	if !found {
		return nil, err
	}
	fmt.Fprintf(notes, "no monopod answers on %s; this is from its files in %s, the last of %s ago\n", socket, dir, duration.HumanDuration(now.Sub(last)))
	return &source{socket: socket, dir: dir}, nil
}

// isDown reports whether an error means that nobody listens on the socket.
func isDown(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

// lastWritten returns when the newest of the reports was written, false if there are none.
func lastWritten(dir string) (last time.Time, found bool) {
	paths, _ := filepath.Glob(filepath.Join(dir, "pods", "*.json"))
	for _, path := range append(paths, filepath.Join(dir, "manifests.json"), filepath.Join(dir, "events.jsonl")) {
		if fi, err := os.Stat(path); err == nil {
			found = true
			if fi.ModTime().After(last) {
				last = fi.ModTime()
			}
		}
	}
	return last, found
}

// pods returns all pods, sorted by namespace and name.
func (s *source) pods(ctx context.Context) ([]v1.Pod, error) {
	if s.dir == "" {
		var list v1.PodList
		err := getJSON(ctx, s.socket, "/pods", &list)
		return list.Items, err
	}
	var out []v1.Pod
	paths, _ := filepath.Glob(filepath.Join(s.dir, "pods", "*.json"))
	for _, path := range paths {
		var p v1.Pod
		if err := readJSON(path, &p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b v1.Pod) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return out, nil
}

// manifests returns what became of the manifests.
func (s *source) manifests(ctx context.Context) (status.Manifests, error) {
	var m status.Manifests
	if s.dir == "" {
		err := getJSON(ctx, s.socket, "/manifests", &m)
		return m, err
	}
	err := readJSON(filepath.Join(s.dir, "manifests.json"), &m)
	return m, err
}

// events returns the events of a pod, "namespace/name", or all for "", the latest last.
func (s *source) events(ctx context.Context, pod string) ([]v1.Event, error) {
	if s.dir == "" {
		var list v1.EventList
		err := getJSON(ctx, s.socket, "/events?pod="+url.QueryEscape(pod), &list)
		return list.Items, err
	}
	all, err := events.Read(filepath.Join(s.dir, "events.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(all, func(e v1.Event) bool { return pod != "" && podOf(&e) != pod }), err
}

// podOf returns which pod an event is about, "namespace/name", "" if none.
func podOf(e *v1.Event) string {
	if e.InvolvedObject.Kind != "Pod" {
		return ""
	}
	return e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
}

// readJSON reads a file; one that is not there leaves v as it is.
func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
