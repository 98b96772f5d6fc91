// Command demo shows monopod at work: it starts a private containerd with images
// made of local files, runs monopod on a copy of testdata/manifests, shows the pods
// come up, stays for the reader to try things until Ctrl-C, and then leaves the
// machine as it was. A second Ctrl-C does not wait for pods to stop gracefully.
//
// With DEMO_ONCE=1 it ends by itself after the pods came up; the exit code says
// whether they did and whether anything was left behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"monopod/agent/e2e/rig"
)

func main() {
	rig.Janitor()
	containerd := flag.String("containerd", rig.Distro, "containerd to use: "+rig.Distro+" or "+rig.Latest)
	binary := flag.String("monopod", "", "monopod binary (default: build it)")
	manifests := flag.String("manifests", "testdata/manifests", "folder with the demo's pods")
	flag.Parse()

	ctx, interrupted := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		interrupted(errInterrupted)
		<-signals
		os.Exit(130) // the janitor cleans up
	}()
	d := demo{version: *containerd, binary: *binary, source: *manifests, once: os.Getenv("DEMO_ONCE") == "1"}
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

var errInterrupted = errors.New("interrupted")

type demo struct {
	version, binary, source string
	once                    bool
	rig                     *rig.Rig
	agent                   *rig.Agent
}

// run shows everything from the empty machine to the empty machine.
func (d *demo) run(ctx context.Context) error {
	say("starting a private containerd (%s) and a registry with images made of local files", d.version)
	var err error
	if d.rig, err = rig.Open(ctx, d.version); err != nil {
		return err
	}
	err = d.show(ctx)
	if errors.Is(err, errInterrupted) {
		err = nil
	}
	say("")
	say("removing the pods and everything else (Ctrl-C again to be rough)")
	return errors.Join(err, d.leave(context.WithoutCancel(ctx)))
}

func (d *demo) show(ctx context.Context) error {
	if err := d.start(ctx); err != nil {
		return err
	}
	if err := d.watch(ctx); err != nil {
		return fmt.Errorf("%w\nend of monopod's log:\n%s", err, rig.Tail(d.agent.Log, 20))
	}
	if d.once {
		return nil
	}
	d.explain(ctx)
	select {
	case <-ctx.Done():
		return nil
	case <-d.agent.Done():
		return fmt.Errorf("monopod ended by itself\n%s", rig.Tail(d.agent.Log, 20))
	}
}

// leave stops the pods as monopod does when their manifests go, then closes the rig.
func (d *demo) leave(ctx context.Context) error {
	var gone error
	if d.agent != nil && d.agent.Running() {
		gone = errors.Join(d.agent.Clear(), rig.Until(ctx, leaveLimit, func() error {
			left, err := d.rig.CRI.Sandboxes(ctx, "")
			if err == nil && len(left) > 0 {
				return fmt.Errorf("%d pods are still there", len(left))
			}
			return err
		}))
	}
	leaks, err := d.rig.Close(ctx)
	if len(leaks) > 0 {
		return errors.Join(gone, err, fmt.Errorf("left behind, and then removed:\n  %s", strings.Join(leaks, "\n  ")))
	}
	if gone == nil && err == nil {
		say("nothing is left of it")
	}
	return errors.Join(gone, err)
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }
