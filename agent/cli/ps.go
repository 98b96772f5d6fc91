package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/status"
)

// Options says what Ps prints and how.
type Options struct {
	Socket string    // of the agent
	Output string    // "", wide, json or yaml
	Color  bool      // colour the STATUS word
	Now    time.Time // what ages are counted to; zero: now
}

// Colored says whether output to f should have colours: on a terminal that
// knows them, unless NO_COLOR is set (no-color.org).
func Colored(f *os.File, env func(string) string) bool {
	return env("NO_COLOR") == "" && env("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Ps prints the pods of the agent, and below them all that is wrong, in words.
func Ps(ctx context.Context, w io.Writer, o Options) error {
	switch o.Output {
	case "json", "yaml":
		return psRaw(ctx, w, o)
	case "", "wide":
	default:
		return fmt.Errorf("output %q is not one of wide, json, yaml", o.Output)
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	var pods v1.PodList
	var manifests status.Manifests
	var runtime status.Runtime
	for path, into := range map[string]any{"/pods": &pods, "/manifests": &manifests, "/runtime": &runtime} {
		if err := getJSON(ctx, o.Socket, path, into); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	if len(pods.Items) == 0 {
		fmt.Fprintln(&out, noPods(manifests.Dir))
	} else {
		podTable(pods.Items, manifests, o).print(&out)
	}
	words := slices.Concat(runtimeWords(runtime, o.Now), nodeWords(ctx, o), manifestWords(manifests), podWords(pods.Items))
	if len(words) > 0 {
		fmt.Fprintf(&out, "\n%s\n", strings.Join(words, "\n"))
	}
	_, err := w.Write(out.Bytes())
	return err
}

// psRaw prints the list as the endpoint gave it.
func psRaw(ctx context.Context, w io.Writer, o Options) error {
	body, err := get(ctx, o.Socket, "/pods")
	if err != nil {
		return err
	}
	return printAs(w, o.Output, json.RawMessage(body))
}

// printAs prints v as json or yaml.
func printAs(w io.Writer, output string, v any) error {
	var data []byte
	var err error
	if output == "yaml" {
		data, err = yaml.Marshal(v)
	} else {
		data, err = json.MarshalIndent(v, "", "  ")
		data = append(data, '\n')
	}
	if err != nil {
		return fmt.Errorf("print as %s: %w", output, err)
	}
	_, err = w.Write(data)
	return err
}

func noPods(dir string) string {
	if dir == "" {
		return "No pods."
	}
	return fmt.Sprintf("No pods. Put manifests (*.yaml, *.yml, *.json) into %s.", dir)
}

// podTable lays the pods out; the namespace shows where it tells something.
func podTable(pods []v1.Pod, m status.Manifests, o Options) *table {
	wide := o.Output == "wide"
	namespaces := wide || slices.ContainsFunc(pods, func(p v1.Pod) bool { return p.Namespace != v1.NamespaceDefault })
	t := &table{}
	head := []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE"}
	if namespaces {
		head = slices.Insert(head, 0, "NAMESPACE")
	}
	if wide {
		head = append(head, "IP", "FILE", "IMAGES")
	}
	t.add(plainCells(head)...)
	files := filesOf(m)
	for i := range pods {
		p := &pods[i]
		s := summarize(p, o.Now)
		row := plainCells([]string{shortName(p), s.ready, s.word, s.restarts, s.age})
		if o.Color {
			row[2].color = s.color
		}
		if namespaces {
			row = slices.Insert(row, 0, cell{text: p.Namespace})
		}
		if wide {
			file := cmp.Or(files[p.Namespace+"/"+shortName(p)], files[p.Namespace+"/"+p.Name])
			row = append(row, plainCells([]string{p.Status.PodIP, file, images(p)})...)
		}
		t.add(row...)
	}
	return t
}

// filesOf returns the file of each pod by "namespace/name".
func filesOf(m status.Manifests) map[string]string {
	files := map[string]string{}
	for _, f := range m.Files {
		for _, pod := range f.Pods {
			if files[pod] == "" {
				files[pod] = within(m.Dir, f.Path)
			}
		}
	}
	return files
}

// within returns path relative to dir if it is inside.
func within(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); dir != "" && err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// shortName is the pod's name as its manifest has it, without the node.
func shortName(p *v1.Pod) string {
	if p.Spec.NodeName == "" {
		return p.Name
	}
	if short := strings.TrimSuffix(p.Name, "-"+strings.ToLower(p.Spec.NodeName)); short != "" {
		return short
	}
	return p.Name
}

func images(p *v1.Pod) string {
	var all []string
	for _, c := range p.Spec.Containers {
		all = append(all, c.Image)
	}
	return strings.Join(all, ",")
}
