package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"monopod/agent/checkpoint"
	"monopod/agent/cli/command"
	"monopod/agent/disk"
	"monopod/agent/handover"
	"monopod/agent/hold"
	"monopod/agent/objects"
	"monopod/agent/print"
	values "monopod/agent/settings"
	"monopod/cgroups"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name: "export", ArgsUsage: "DIR", Usage: "write the manifests with which a kubelet takes the pods over",
		Description: `
Each version that runs, or is to, is written into DIR, which must be new or empty, with
its uid: a kubelet with this folder, the same root dir, node name, cgroups and logs
goes on with the containers that run. Nothing else is changed, and the agent may run.

A kubelet refuses static pods that refer to a ConfigMap, a Secret or a claim: these are
named with what to do, and not written. With --inline the values of variables are
written into the manifest, and claims mounted by the path of their folder.

With --for-kubelet ROOT, the root dir of the kubelet, its config.yaml there is compared,
and the settings that it needs are printed.

Give it the flags that "monopod run" gets. docs/into-a-cluster.md has the way.

Exit codes: 0; 1: a pod is not written, or a setting differs; 2: wrong flags or
settings.`,
		Flags: append(runFlags(),
			&cli.BoolFlag{Name: "inline", Usage: "write the values of ConfigMaps and Secrets, and the paths of claims, into the manifests"},
			&cli.StringFlag{Name: "for-kubelet", Usage: "compare the settings of the kubelet whose root dir is `ROOT`"}),
		Action: exportPods,
	}
}

func exportPods(c *cli.Context) error {
	if c.Args().Len() != 1 {
		return command.UsageError("export where to? Give a new folder, as in `monopod export handover`")
	}
	cfg, _, err := readSettings(c)
	if err != nil {
		return command.UsageError("%w", err)
	}
	cfg = besideAgent(c.Context, cfg)
	accepted, err := checkpoint.AcceptedIn(cfg.Root)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(c.Args().First())
	if err != nil {
		return err
	}
	has, err := checkpoint.SavedObjects(cfg.Root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ConfigMaps and Secrets: %w", err)
	}
	x := handover.Exporter{Root: cfg.Root, Inline: c.Bool("inline"), Objects: objects.NewSet(has)}
	left, err := writeManifests(c.App.Writer, &x, dir, accepted, hold.Recorded(cfg.Root).Stopped)
	if err != nil {
		return err
	}
	differs := 0
	if c.IsSet("for-kubelet") {
		n := handover.Node{Name: cfg.NodeName, Root: cfg.Root, PodLogs: cfg.PodLogs, CgroupRoot: cfg.CgroupRoot, SeccompDefault: cfg.SeccompDefault, Proc: proc,
			Endpoint: values.Endpoints(cfg)[0]}
		if differs, err = checkKubelet(c, &n, dir, cfg.ManagedRuntime, accepted); err != nil {
			return err
		}
	}
	if left+differs > 0 {
		return cli.Exit("", command.ExitFailed)
	}
	return nil
}

// writeManifests writes what a kubelet takes, and prints a line for each pod. It returns how many
// pods are not written, those that their owner stopped among them.
func writeManifests(w io.Writer, x *handover.Exporter, dir string, accepted []*checkpoint.Checkpoint, stopped map[string]hold.Stop) (left int, err error) {
	if err := newFolder(dir); err != nil {
		return 0, err
	}
	for _, c := range accepted {
		e := x.Export(c.Pod)
		if stop, is := stopped[c.Key().String()]; is && !stop.Starts {
			e.Refused = append(e.Refused, "it is stopped, and a kubelet would start it: `monopod start` it before, or leave it out")
		}
		var text []byte
		if len(e.Refused) == 0 {
			if text, err = manifestText(e.Pod); err != nil {
				e.Refused = append(e.Refused, err.Error())
			}
		}
		if len(e.Refused) > 0 {
			left++
			for _, why := range e.Refused {
				fmt.Fprintf(w, "left     %s: %s\n", c.Key(), print.OneLine(why))
			}
			continue
		}
		if err := writeNew(filepath.Join(dir, e.File), text); err != nil {
			return left, err
		}
		fmt.Fprintf(w, "written  %s (%s)\n", c.Key(), e.File)
	}
	if err := disk.SyncDir(dir); err != nil {
		return left, err
	}
	_, err = fmt.Fprintf(w, "%s has the manifests of %d of %d pods.\n", dir, len(accepted)-left, len(accepted))
	return left, err
}

// newFolder makes a folder, which may exist if it is empty: a kubelet runs as root whatever is in it.
func newFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var is unix.Stat_t
	if err := unix.Stat(dir, &is); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if is.Mode&0o022 != 0 || is.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("%s may be written by others, who could have a kubelet run what they like: name a new folder", dir)
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty, and a kubelet reads each file in it: name a new folder", dir)
	}
	return err
}

// manifestText returns a pod as YAML from which the same pod is read again. Where a text has
// characters that YAML reads as others, it is JSON with these escaped, which is YAML, too.
func manifestText(p *v1.Pod) ([]byte, error) {
	text, err := yaml.Marshal(p)
	if err == nil && readsAs(text, p) {
		return text, nil
	}
	text, err = json.Marshal(p)
	if err != nil {
		return nil, err
	}
	text = escapeSpecial(text)
	if !readsAs(text, p) {
		return nil, errors.New("it has a text that no manifest can hold")
	}
	return append(text, '\n'), nil
}

func readsAs(text []byte, p *v1.Pod) bool {
	got := &v1.Pod{}
	return yaml.Unmarshal(text, got) == nil && equality.Semantic.DeepEqual(got, p)
}

// escapeSpecial escapes, in JSON, the characters that YAML refuses or reads as the end of a line.
func escapeSpecial(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case r >= 0x7f && r <= 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// writeNew writes a file that only root may read, and that does not exist. One that cannot be written
// whole is removed.
func writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// checkKubelet prints the settings that a kubelet needs, and in what the one with the root dir of
// the flag differs. It returns in how many.
func checkKubelet(c *cli.Context, n *handover.Node, dir string, isManaged bool, accepted []*checkpoint.Checkpoint) (int, error) {
	var pods []*v1.Pod
	for _, k := range accepted {
		pods = append(pods, k.Pod)
		n.Name = k.Pod.Spec.NodeName
	}
	n.CgroupDriver = handover.DriverOfAny(hierarchies, n.CgroupRoot, pods)
	if n.CgroupDriver == cgroups.None {
		fmt.Fprintln(c.App.Writer, "no pod has a cgroup, so cgroupDriver is not known: let it be the runtime's")
	}
	differs, err := n.CheckKubelet(c.String("for-kubelet"), dir)
	if err != nil {
		return 0, err
	}
	if isManaged {
		differs = append(differs, "the runtime is one of monopod's own, which nothing starts without monopod, as after a reboot: let the pods end once, and use a containerd that the machine starts")
	}
	for _, why := range differs {
		fmt.Fprintf(c.App.Writer, "differs  %s\n", print.OneLine(why))
	}
	_, err = fmt.Fprintf(c.App.Writer, "\nThe kubelet needs:\n\n%s", n.KubeletSettings(dir))
	return len(differs), err
}

// Where the kernel shows cgroups and processes.
const (
	hierarchies = "/sys/fs/cgroup"
	proc        = "/proc"
)
