package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/disk"
	"monopod/agent/handover"
	"monopod/agent/hold"
	"monopod/agent/node"
	"monopod/agent/objects"
	"monopod/agent/print"
	values "monopod/agent/settings"
	"monopod/agent/status"
	"monopod/cgroups"
	"monopod/cri"
	"monopod/manifests/shell"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name: "export", ArgsUsage: "DIR", Usage: "write the manifests with which a kubelet takes the pods over",
		Description: `
Each version that runs, or is to, is written into DIR with its uid. DIR must be new, or
empty and of root or your own, and no other may write to it. A kubelet with this folder,
the same root dir, node name, cgroups and logs goes on with the containers that run.
Nothing else is changed, and the agent may run.

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
	record, err := hold.ReadRecord(cfg.Root)
	if err != nil {
		return fmt.Errorf("nothing is written, as a kubelet would start pods that are stopped: %w; start monopod, which repairs the record", err)
	}
	if err := newFolder(dir); err != nil {
		return err
	}
	x := handover.Exporter{Root: cfg.Root, Inline: c.Bool("inline"), Objects: objects.NewSet(has)}
	waiting, err := waitingIn(cfg.Root)
	if err != nil { // a report is no state: the manifests do not need it
		fmt.Fprintf(c.App.ErrWriter, "monopod: which pods and edits wait is not known: %v\n", err)
	}
	left, err := writeManifests(c.App.Writer, &x, dir, accepted, record.Stopped, waiting)
	if err != nil {
		return err
	}
	differs := 0
	if c.IsSet("for-kubelet") {
		n := handover.Node{Root: cfg.Root, PodLogs: cfg.PodLogs, CgroupRoot: cfg.CgroupRoot, SeccompDefault: cfg.SeccompDefault, Proc: proc,
			Endpoint: runtimeOf(c.Context, values.Endpoints(cfg)), Pods: len(accepted), Cores: runtime.NumCPU(),
			MaxPods: cfg.MaxPods, PodsPerCore: cfg.PodsPerCore, UnsafeSysctls: cfg.AllowedUnsafeSysctls}
		if n.HasSwap, err = node.HasSwap(filepath.Join(proc, "swaps")); err != nil {
			return err
		}
		if n.Name, err = values.NodeName(cfg, false); err != nil {
			return fmt.Errorf("node name: %w; give one with --node-name", err)
		}
		if differs, err = checkKubelet(c, &n, dir, cfg.ManagedRuntime, accepted); err != nil {
			return err
		}
	}
	if left+differs > 0 {
		return cli.Exit("", command.ExitFailed)
	}
	return nil
}

// runtimeOf returns the endpoint that the agent uses of these: the first that answers; "": several
// could be meant, and none answers.
func runtimeOf(ctx context.Context, endpoints []string) string {
	if len(endpoints) == 1 {
		return endpoints[0]
	}
	found, err := cri.Dial(endpoints...)
	if err != nil {
		return ""
	}
	defer found.Close()
	if _, err := found.Version(ctx); err != nil {
		return ""
	}
	return found.Endpoint()
}

// waitingVersion is a version of a pod that the agent reports as one that waits.
type waitingVersion struct {
	file    string
	version *status.Version
}

// waitingIn returns the versions that wait, by the agent's last report in a root dir; none: it has
// none.
func waitingIn(root string) (all []waitingVersion, err error) {
	known, err := client.LastKnown(filepath.Join(root, "status"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range known.Manifests.Files {
		for k := range f.Versions {
			if f.Versions[k].State == status.Waiting {
				all = append(all, waitingVersion{f.Path, &f.Versions[k]})
			}
		}
	}
	return all, nil
}

// writeManifests writes what a kubelet takes, and prints a line for each pod. It returns how many
// pods are not written.
func writeManifests(w io.Writer, x *handover.Exporter, dir string, accepted []*checkpoint.Checkpoint, stopped map[string]hold.Stop, waiting []waitingVersion) (left int, err error) {
	known := map[string]bool{}
	for _, c := range accepted {
		key := c.Key().String()
		known[key] = true
		e := x.Export(c.Pod)
		if stop, is := stopped[key]; is && !stop.Starts {
			e.Refused = append(e.Refused, "it is stopped: `monopod start` it, or leave it out")
		}
		if len(e.Refused) > 0 {
			left++
			for _, why := range e.Refused {
				fmt.Fprintf(w, "left     %s: %s\n", key, print.OneLine(why))
			}
			continue
		}
		if err := disk.WriteFile(filepath.Join(dir, e.File), e.Text, 0o600); err != nil { // it may have the values of Secrets
			return left, err
		}
		fmt.Fprintf(w, "written  %s (%s)%s\n", key, e.File, laterOf(key, &e, waiting))
	}
	for _, one := range waiting {
		v := one.version
		if !known[v.Pod] {
			known[v.Pod] = true
			left++
			fmt.Fprintf(w, "left     %s of %s: %s\n", v.Pod, one.file, print.JoinWords("it has not started", print.OneLine(v.Reason)))
		}
	}
	_, err = fmt.Fprintf(w, "%s has the manifests of %d of %d pods.\n", dir, len(known)-left, len(known))
	return left, err
}

// laterOf says that another version of a pod waits than the exported one; "": none does.
func laterOf(pod string, e *handover.Exported, waiting []waitingVersion) string {
	for _, one := range waiting {
		if v := one.version; v.Pod == pod && v.Hash != e.Hash {
			return print.JoinWords(fmt.Sprintf(": %s gives another version, which waits", one.file), print.OneLine(v.Reason))
		}
	}
	return ""
}

// newFolder makes a folder, which may exist if it is empty, as a kubelet reads each file in it, and
// if no other user may write to it.
func newFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	d, err := disk.OpenDir(dir, 1)
	if err != nil {
		return err
	}
	defer d.Close()
	has, err := d.Self()
	switch uid := int(has.Uid); {
	case err != nil:
		return err
	case uid != 0 && uid != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, who could run anything as root with a kubelet: name a new folder", dir, uid)
	case has.Mode&0o022 != 0:
		return fmt.Errorf("%s may be written by others (mode %04o), who could run anything as root with a kubelet: chmod go-w %s, or name a new folder", dir, has.Mode&0o7777, shell.Word(dir))
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty, and a kubelet reads each file in it: name a new folder", dir)
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
	if n.Endpoint == "" {
		fmt.Fprintln(c.App.Writer, "no runtime answers, so containerRuntimeEndpoint is not known: let it be that of the runtime with the pods")
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
