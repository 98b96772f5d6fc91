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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/status"
)

// Options says what Ps and Images print and how.
type Options struct {
	Source
	Choice   Choice    // Ps: of pods
	Endpoint string    // Ps: of the runtime, asked where no agent runs; "": whichever is there
	Output   string    // "", wide, json or yaml
	Color    bool      // colour the STATUS word
	Now      time.Time // what ages are counted to; zero: now
	Err      io.Writer // Ps: where it is said that no agent runs
}

// Colored says whether output to f should have colours: on a terminal that
// knows them, unless NO_COLOR is set (no-color.org).
func Colored(f *os.File, env func(string) string) bool {
	return env("NO_COLOR") == "" && env("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Ps prints the pods of the agent, and below them all that is wrong, in words.
// Where no agent runs it prints what one reported last, and returns ErrDown.
func Ps(ctx context.Context, w io.Writer, o Options) error {
	if !slices.Contains([]string{"", "wide", "json", "yaml"}, o.Output) {
		return fmt.Errorf("output %q is not one of wide, json, yaml", o.Output)
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	k, err := o.open(ctx)
	if err != nil {
		return err
	}
	if k.pods, err = o.Choice.Of(k.pods); err != nil {
		return err
	}
	if o.Output == "json" || o.Output == "yaml" {
		list := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: k.pods}
		err = printAs(w, o.Output, list)
	} else {
		err = psText(ctx, w, k, o)
	}
	if err == nil && !k.seen.IsZero() {
		return ErrDown
	}
	return err
}

func psText(ctx context.Context, w io.Writer, k *known, o Options) error {
	var out bytes.Buffer
	switch {
	case len(k.pods) > 0:
		podTable(k.pods, k.manifests, o).print(&out)
	case o.Choice.any():
		fmt.Fprintln(&out, "No pods match.")
	default:
		fmt.Fprintln(&out, noPods(k.manifests.Dir))
	}
	var words []string
	if k.seen.IsZero() {
		words = append(runtimeWords(k.runtime, o.Now), nodeWords(ctx, o)...)
	} else {
		words = nowWords(ctx, k.pods, o.Endpoint)
	}
	if !o.Choice.any() {
		words = append(words, manifestWords(k.manifests)...)
	}
	if words = append(words, podWords(k.pods)...); len(words) > 0 {
		fmt.Fprintf(&out, "\n%s\n", strings.Join(words, "\n"))
	}
	_, err := w.Write(out.Bytes())
	return err
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
