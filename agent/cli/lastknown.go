package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"monopod/agent/status"
)

// Source is where commands learn of pods: from the agent behind the socket, or
// where none answers from what one has left under its root folder.
type Source struct {
	Socket string
	Root   string // "": only a running agent counts
}

// known is what a Source knows.
type known struct {
	pods      []v1.Pod
	manifests status.Manifests
	runtime   status.Runtime // unknown without an agent
	seen      time.Time      // when a former agent reported last; zero: the agent answers
	from      Source
}

// open returns all that is known, and says so if no agent runs.
func (o Options) open(ctx context.Context) (*known, error) {
	k, err := o.Source.all(ctx)
	if err == nil && k.down() && o.Err != nil {
		fmt.Fprintln(o.Err, "monopod: "+downWords(o.Socket, k.seen, o.Now))
	}
	return k, err
}

// down reports whether no agent answers.
func (k *known) down() bool { return !k.seen.IsZero() }

// pods asks the agent for its pods alone, or reads a former one's.
func (s Source) pods(ctx context.Context) (*known, error) {
	var list v1.PodList
	if err := getJSON(ctx, s.Socket, "/pods", &list); err != nil {
		return s.former(err)
	}
	return &known{pods: list.Items, from: s}, nil
}

// all asks the agent for all that ps shows, or reads what a former one reported.
func (s Source) all(ctx context.Context) (*known, error) {
	k, err := s.pods(ctx)
	if err != nil || !k.seen.IsZero() {
		return k, err
	}
	if err := getJSON(ctx, s.Socket, "/manifests", &k.manifests); err != nil {
		return nil, err
	}
	return k, getJSON(ctx, s.Socket, "/runtime", &k.runtime)
}

// former returns what a former agent reported, if err says that none runs; err
// where nothing is left either.
func (s Source) former(err error) (*known, error) {
	if s.Root == "" || !nobodyThere(err) {
		return nil, err
	}
	k, failed := lastKnown(filepath.Join(s.Root, "status"))
	switch {
	case errors.Is(failed, fs.ErrNotExist):
		return nil, err
	case errors.Is(failed, fs.ErrPermission):
		return nil, fmt.Errorf("%w; what it reported in %s is for root only", err, s.Root)
	case failed != nil:
		return nil, fmt.Errorf("%w; what it reported is no use: %w", err, failed)
	}
	k.from = s
	return k, nil
}

// nobodyThere tells an agent that does not run from one that does not answer.
func nobodyThere(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
}

// lastKnown reads the reports in a status folder.
func lastKnown(dir string) (*known, error) {
	files, err := os.ReadDir(filepath.Join(dir, "pods"))
	if err != nil {
		return nil, err
	}
	k := &known{}
	for _, f := range files { // sorted by name, as the agent sorts
		if strings.HasPrefix(f.Name(), ".") || !strings.HasSuffix(f.Name(), ".json") {
			continue
		}
		var p v1.Pod
		if err := k.read(filepath.Join(dir, "pods", f.Name()), &p); err != nil {
			return nil, err
		}
		p.TypeMeta = metav1.TypeMeta{} // as in the endpoint's list
		k.pods = append(k.pods, p)
	}
	err = k.read(filepath.Join(dir, "manifests.json"), &k.manifests)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if k.seen.IsZero() {
		if fi, err := os.Stat(filepath.Join(dir, "pods")); err == nil {
			k.seen = fi.ModTime()
		}
	}
	return k, err
}

// read decodes a report, and notes when it was written.
func (k *known) read(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if fi, err := os.Stat(path); err == nil && fi.ModTime().After(k.seen) {
		k.seen = fi.ModTime()
	}
	return nil
}

// ErrDown is that no agent runs: ps printed what one reported last, forget
// found nobody to ask.
var ErrDown = errors.New("the agent does not run")

// downWords says that no agent runs and how old what is known is.
func downWords(socket string, seen, now time.Time) string {
	return fmt.Sprintf("the agent does not run (nobody answers on %s): this is what it reported last, %s ago", socket, duration.HumanDuration(now.Sub(seen)))
}
