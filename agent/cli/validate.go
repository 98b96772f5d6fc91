package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/command"
	"monopod/agent/cli/print"
	"monopod/agent/config"
	"monopod/agent/status"
	"monopod/manifests"
)

// Checked is one file that `monopod validate` looked at.
type Checked struct {
	Path     string // as the person gave it
	Pods     []CheckedPod
	Objects  []string         // ConfigMaps and Secrets, such as "ConfigMap default/app"
	Problems []status.Problem // with File as the person gave it
}

// CheckedPod is a pod that is fit to run.
type CheckedPod struct {
	Name       string // namespace/name
	Containers int    // init containers included
}

// Counts sums up what was checked.
type Counts struct{ Files, Pods, Problems, Warnings int }

// PrintProblems prints the problems of each file, the pods of each file that
// has none but warnings, and a line that sums up. The files are good if
// Problems is 0.
func PrintProblems(w io.Writer, files []Checked) (Counts, error) {
	n := Counts{Files: len(files)}
	var out strings.Builder
	var good print.Table
	for _, f := range files {
		n.Pods += len(f.Pods)
		warnings := 0
		for _, p := range f.Problems {
			if p.Warning {
				warnings++
			}
			fmt.Fprintln(&out, print.ProblemLine(p, ""))
		}
		n.Warnings += warnings
		n.Problems += len(f.Problems) - warnings
		if warnings == len(f.Problems) {
			addFile(&good, f)
		}
	}
	good.Print(&out)
	fmt.Fprintln(&out, n)
	_, err := io.WriteString(w, out.String())
	return n, err
}

// addFile adds a line for each pod of a good file.
func addFile(t *print.Table, f Checked) {
	for _, p := range f.Pods {
		t.Line("ok", f.Path, p.Name+" ("+count(p.Containers, "container")+")")
	}
	for _, o := range f.Objects {
		t.Line("ok", f.Path, o)
	}
	if len(f.Pods)+len(f.Objects) == 0 {
		t.Line("ok", f.Path, "no pods")
	}
}

// String is such as "3 files, 5 pods, 2 problems, 1 warning".
func (n Counts) String() string {
	s := count(n.Files, "file") + ", " + count(n.Pods, "pod") + ", " + count(n.Problems, "problem")
	if n.Warnings > 0 {
		s += ", " + count(n.Warnings, "warning")
	}
	return s
}

func count(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s"
	case 1:
		return "1 " + noun
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}

// validate checks the manifests that its arguments stand for, as the agent
// would. It exits with 2 when one is refused.
func validate(c *cli.Context) error {
	file := ""
	if command.GivenBy(c, "config") == "--config" {
		file = c.String("config")
	}
	if c.NArg() == 0 && file == "" {
		return command.UsageError("validate what? Give files or folders, - for standard input, or a file of settings with --config")
	}
	cfg, warnings, err := readSettings(c)
	for _, w := range warnings {
		fmt.Fprintln(c.App.ErrWriter, print.OneLine(w.Error()))
	}
	if err != nil {
		return command.UsageError("%w", err)
	}
	if c.NArg() == 0 {
		_, err := fmt.Fprintf(c.App.Writer, "ok   %s (settings)\n", print.OneLine(file))
		return err
	}
	v, err := checkAll(c.Context, cfg, nil, c.Args().Slice(), c.App.Reader)
	if err != nil {
		return command.UsageError("%v", err)
	}
	v.checkUIDs()
	v.checkObjects(" among these files: the pod waits until there is one", true)
	n, err := PrintProblems(c.App.Writer, v.files)
	if err != nil {
		return err
	}
	if n.Problems > 0 {
		return command.UsageError("")
	}
	return nil
}

// checkAll checks all that the arguments stand for.
func checkAll(ctx context.Context, cfg config.Config, fill *manifests.Fill, args []string, stdin io.Reader) (*validation, error) {
	node := cfg.NodeName
	if node == "" {
		node, _ = os.Hostname()
	}
	v := &validation{from: map[string]string{}, at: map[manifests.Key]func(string) manifests.Place{}}
	v.options = manifests.Options{
		NodeName: strings.ToLower(node), NameSuffix: cfg.PodNameSuffix, Validation: cfg.Validation, RuntimeClasses: cfg.RuntimeClasses, Fill: fill}
	for _, arg := range args {
		if err := v.add(ctx, arg, stdin); err != nil {
			return nil, err
		}
	}
	v.checkPorts()
	return v, nil
}

// validation gathers the problems of the files that are checked together.
type validation struct {
	options manifests.Options
	files   []Checked
	pods    []*manifests.Pod // that are fit to run
	objects []*manifests.Object
	from    map[string]string // which file gives a pod, or an object
	at      map[manifests.Key]func(field string) manifests.Place
}

// add checks what one argument stands for; "-" is stdin.
func (v *validation) add(ctx context.Context, arg string, stdin io.Reader) error {
	if arg == "-" {
		return v.stream(ctx, arg, stdin)
	}
	if info, err := os.Stat(arg); err == nil && info.Mode()&fs.ModeNamedPipe != 0 { // such as <(helm template .)
		pipe, err := os.OpenFile(arg, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer pipe.Close()
		return v.stream(ctx, arg, pipe)
	}
	paths, err := manifests.Paths(arg)
	if err != nil {
		return fmt.Errorf("%s: %w", arg, cmp.Or(errors.Unwrap(err), err))
	}
	for _, path := range paths {
		if data, err := manifests.ReadFile(path); err != nil {
			v.unread(path, err)
		} else {
			v.check(path, data)
		}
	}
	return nil
}

// stream checks what comes from standard input or from a pipe.
func (v *validation) stream(ctx context.Context, path string, r io.Reader) error {
	data, err := readAll(ctx, r)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", path, err)
	case err != nil:
		v.unread(path, err)
	default:
		v.check(path, data)
	}
	return nil
}

// unread reports a file that cannot be read.
func (v *validation) unread(path string, err error) {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	v.files = append(v.files, Checked{Path: path, Problems: []status.Problem{{File: path, Message: err.Error()}}})
}

// check checks one file. Two pods of one name are a problem, even in two files.
func (v *validation) check(path string, data []byte) {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	pods, objects, found := manifests.DecodePlaced(abs, data, v.options)
	f := Checked{Path: path}
	for _, p := range found {
		p.File = path
		f.Problems = append(f.Problems, p)
	}
	for _, o := range objects {
		if first, twice := v.from[o.String()]; twice {
			f.Problems = append(f.Problems, status.Problem{File: path, Line: o.Line, Column: o.Column,
				Message: fmt.Sprintf("%s is in %s already: one of the two must go", o, first)})
			continue
		}
		v.from[o.String()] = path
		v.objects, f.Objects = append(v.objects, o.Object), append(f.Objects, o.String())
	}
	for _, p := range pods {
		key := p.Key().String()
		if first, twice := v.from[key]; twice {
			f.Problems = append(f.Problems, placed(path, p, "metadata.name",
				fmt.Sprintf("pod %s is in %s already: one of the two must go", key, first)))
			continue
		}
		v.from[key] = path
		v.pods, v.at[p.Key()] = append(v.pods, p.Pod), p.At
		containers := len(slices.Concat(p.Spec.InitContainers, p.Spec.Containers))
		f.Pods = append(f.Pods, CheckedPod{Name: key, Containers: containers})
	}
	v.files = append(v.files, f)
}
