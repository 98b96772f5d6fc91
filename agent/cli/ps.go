package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/cli/client"
	"monopod/agent/cli/print"
	"monopod/agent/status"
)

// open returns all that is known, and says so if no agent runs.
func (o Options) open(ctx context.Context) (*client.Known, error) {
	k, err := o.Source.All(ctx)
	if err == nil && k.Down() && o.Err != nil {
		fmt.Fprintln(o.Err, "monopod: "+client.DownWords(o.Socket, k.Seen, o.Now))
	}
	return k, err
}

// Options says what Ps and Images print and how.
type Options struct {
	client.Source
	Choice   client.Choice // Ps: of pods
	Endpoint string        // Ps: of the runtime, asked where no agent runs; "": the first that exists
	Output   string        // "", wide, json or yaml
	Color    bool          // colour the STATUS word
	Now      time.Time     // what ages are counted to; zero: now
	Err      io.Writer     // Ps: where it is said that no agent runs
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
	if k.Pods, err = o.Choice.Of(k.Pods); err != nil {
		return err
	}
	if o.Output == "json" || o.Output == "yaml" {
		list := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: k.Pods}
		err = printAs(w, o.Output, list)
	} else {
		err = psText(ctx, w, k, o)
	}
	if err == nil && !k.Seen.IsZero() {
		return client.ErrDown
	}
	return err
}

func psText(ctx context.Context, w io.Writer, k *client.Known, o Options) error {
	var out bytes.Buffer
	switch {
	case len(k.Pods) > 0:
		podTable(k.Pods, k.Manifests, o).Print(&out)
	case o.Choice.Any():
		fmt.Fprintln(&out, "No pods match.")
	default:
		fmt.Fprintln(&out, noPods(k.Manifests.Dir))
	}
	var words []string
	if k.Seen.IsZero() {
		words = append(print.RuntimeWords(k.Runtime, o.Now), nodeWords(ctx, o)...)
	} else {
		words = print.NowWords(ctx, k.Pods, o.Endpoint)
	}
	if !o.Choice.Any() {
		words = append(words, print.ManifestWords(k.Manifests)...)
	}
	if words = append(words, print.PodWords(k.Pods)...); len(words) > 0 {
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
func podTable(pods []v1.Pod, m status.Manifests, o Options) *print.Table {
	wide := o.Output == "wide"
	namespaces := wide || slices.ContainsFunc(pods, func(p v1.Pod) bool { return p.Namespace != v1.NamespaceDefault })
	t := &print.Table{}
	head := []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE"}
	if namespaces {
		head = slices.Insert(head, 0, "NAMESPACE")
	}
	if wide {
		head = append(head, "IP", "FILE", "IMAGES")
	}
	t.Add(print.PlainCells(head)...)
	files := filesOf(m)
	for i := range pods {
		p := &pods[i]
		s := print.Summarize(p, o.Now)
		row := print.PlainCells([]string{print.ShortName(p), s.Ready, s.Word, s.Restarts, s.Age})
		if o.Color {
			row[2].Color = s.Color
		}
		if namespaces {
			row = slices.Insert(row, 0, print.Cell{Text: p.Namespace})
		}
		if wide {
			file := cmp.Or(files[p.Namespace+"/"+print.ShortName(p)], files[p.Namespace+"/"+p.Name])
			row = append(row, print.PlainCells([]string{p.Status.PodIP, file, images(p)})...)
		}
		t.Add(row...)
	}
	return t
}

// filesOf returns the file of each pod by "namespace/name".
func filesOf(m status.Manifests) map[string]string {
	files := map[string]string{}
	for _, f := range m.Files {
		for _, pod := range f.Pods {
			if files[pod] == "" {
				files[pod] = print.Within(m.Dir, f.Path)
			}
		}
	}
	return files
}

func images(p *v1.Pod) string {
	var all []string
	for _, c := range p.Spec.Containers {
		all = append(all, c.Image)
	}
	return strings.Join(all, ",")
}

func psCommand() *command {
	var o Options
	return &command{
		name: "ps", args: "[POD ...]", usage: "list the pods and what is wrong with them",
		about: `
Where the agent does not run, this is said on standard error, what it reported last is
shown, with what the runtime says of it now, and the exit code is 3.`,
		flags: func(f *pflag.FlagSet) {
			outputFlag(f, &o.Output, "wide, json or yaml")
			namespaceFlag(f, &o.Choice.Namespace)
			selectorFlag(f, &o.Choice.Selector)
			sourceFlags(f, &o.Source)
			f.StringVar(&o.Endpoint, "runtime-endpoint", "", "the CRI runtime's socket, unix://`PATH`, for when the agent does not run")
		},
		run: func(ctx context.Context, c *Call) error {
			o.Choice.Names = c.args
			if err := o.Choice.Check(); err != nil {
				return exit(exitUsage, "%v", err)
			}
			o.Color, o.Err = Colored(c.Out, os.Getenv), c.Err
			return downCode(Ps(ctx, c.Out, o))
		},
	}
}

// downCode makes exit code 3 of an agent that does not run, which was said.
func downCode(err error) error {
	if errors.Is(err, client.ErrDown) {
		return exit(exitDown, "")
	}
	return err
}

func imagesCommand() *command {
	var o Options
	return &command{
		name: "images", usage: "list the images, who uses them, and which are to go",
		flags: func(f *pflag.FlagSet) {
			outputFlag(f, &o.Output, "wide, json or yaml")
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *Call) error {
			if err := c.none(""); err != nil {
				return err
			}
			return Images(ctx, c.Out, o)
		},
	}
}

func versionCommand() *command {
	var output string
	return &command{
		name: "version", usage: "print the version",
		flags: func(f *pflag.FlagSet) { outputFlag(f, &output, "json or yaml") },
		run: func(_ context.Context, c *Call) error {
			return PrintVersion(c.Out, output, Version())
		},
	}
}
