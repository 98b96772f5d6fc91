package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/cli/command"
	"monopod/agent/print"
	"monopod/agent/volume"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

func volumeCommand() *cli.Command {
	var root, output string
	return &cli.Command{
		Name: "volume", ArgsUsage: "ls|inspect|make|rm NAMESPACE/NAME ...", Usage: "list, inspect, make or remove the volumes that outlive pods",
		Description: `
A volume that is a persistentVolumeClaim is a directory, made for the first pod
that mounts it. It stays when the pod and the claim's manifest are removed. inspect
tells how much one takes on its disk and when it was made, where the filesystem
knows. list is another word for ls. rm
removes it with all that is in it, unless a pod uses it that has not ended. One
that was made and is missing, as its disk is not mounted, is not made again for
a pod: the pod waits until it is back, or made again, empty, by make.

The agent need not run.

Exit codes: 0; 1: a volume is in use, there is none of that name, or one that is
to be made is there; 2: wrong flags.`,
		Flags: []cli.Flag{
			command.OutputFlag(&output, "json", "yaml"),
			&cli.StringFlag{Name: "root", EnvVars: command.Variables("root"), Value: command.DefaultRoot, Destination: &root,
				Usage: "the `DIR` of the agent"},
		},
		Action: func(c *cli.Context) error {
			what, names := c.Args().First(), c.Args().Tail()
			if what == "list" {
				what = "ls"
			}
			switch {
			case what == "":
				return command.UsageError("volume what? ls lists the volumes, inspect NAMESPACE/NAME tells of one, make NAMESPACE/NAME makes one, rm NAMESPACE/NAME removes one")
			case what == "ls" && len(names) > 0:
				return command.UsageError("volume ls takes no arguments, got %q", names[0])
			case what == "ls":
				return listVolumes(c.App.Writer, root, output)
			case (what == "rm" || what == "make" || what == "inspect") && len(names) == 0:
				return command.UsageError("which volume? As in `monopod volume %s default/data`", what)
			case what == "inspect":
				f := print.Format{Now: time.Now()}.On(c.App.Writer, os.Getenv)
				return inspectVolumes(c.Context, c.App.Writer, root, output, names, f)
			case what == "make":
				return makeVolumes(c.App.Writer, root, names)
			case what == "rm":
				return removeVolumes(c.Context, c.App.Writer, root, names)
			}
			return command.UsageError("volume %s: there are only ls, inspect, make and rm", what)
		},
	}
}

// listedVolume is a volume as `monopod volume` ls and inspect print it.
type listedVolume struct {
	Name   string   `json:"name"` // namespace/name of the claim
	UsedBy []string `json:"usedBy,omitempty"`
	Path   string   `json:"path"`
	// Missing: it was made, and does not exist.
	Missing bool `json:"missing,omitempty"`

	// Only of inspect, and of an existing volume.
	Made  time.Time `json:"made,omitzero"`   // zero, too, if the filesystem does not know
	Bytes *int64    `json:"bytes,omitempty"` // on its disk

	makeBy string // only of inspect, and of a missing volume: the command that makes it again
}

func listVolumes(w io.Writer, root, output string) error {
	all, err := volumesIn(root)
	if err != nil {
		return err
	}
	if output != "" {
		return print.As(w, output, all)
	}
	var out strings.Builder
	if len(all) == 0 {
		out.WriteString("There are no volumes.\n")
	} else {
		var t print.Table
		t.Line("VOLUME", "USED BY", "PATH")
		for _, v := range all {
			path := v.Path
			if v.Missing {
				path += " (missing: mount its disk, or make it again)"
			}
			t.Line(v.Name, cmp.Or(strings.Join(v.UsedBy, ","), "-"), path)
		}
		t.Print(&out)
	}
	_, err = io.WriteString(w, out.String())
	return err
}

// users returns the pods of which a version uses a claim and has not ended.
func users(pods []*v1.Pod, c types.NamespacedName) (names []string) {
	for _, p := range pods {
		if p.Status.Phase != v1.PodSucceeded && p.Status.Phase != v1.PodFailed && volume.Uses(p, c) {
			names = append(names, manifests.KeyOf(p).String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// removeVolumes removes the volumes that it can.
func removeVolumes(ctx context.Context, w io.Writer, root string, names []string) error {
	claims, err := claimsOf(names)
	if err != nil {
		return err
	}
	var failed []error
	for _, c := range claims {
		err := volume.RemoveClaim(ctx, root, c, func() ([]string, error) {
			pods, err := checkpoint.PodsIn(root)
			return users(pods, c), err
		})
		if err == nil {
			_, err = fmt.Fprintf(w, "volume %s is removed\n", c)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// makeVolumes makes the volumes that it can.
func makeVolumes(w io.Writer, root string, names []string) error {
	claims, err := claimsOf(names)
	if err != nil {
		return err
	}
	if _, err := checkpoint.PodsIn(root); err != nil { // it is no root dir
		return err
	}
	var failed []error
	for _, c := range claims {
		err := volume.MakeClaim(root, c)
		if err == nil {
			_, err = fmt.Fprintf(w, "volume %s is made: %s\n", c, volume.ClaimDir(root, c))
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func claimsOf(names []string) ([]types.NamespacedName, error) {
	var claims []types.NamespacedName
	for _, name := range names {
		c, err := claimOf(name)
		if err != nil {
			return nil, err
		}
		claims = append(claims, c)
	}
	return claims, nil
}

func claimOf(text string) (types.NamespacedName, error) {
	c, bad := annotations.PodReference("", text)
	if c.Namespace == "" || len(bad) > 0 {
		return c, command.UsageError("which volume is %s? Write NAMESPACE/NAME, as in `monopod volume rm default/data`", text)
	}
	return c, nil
}
