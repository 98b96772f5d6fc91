// Command bench measures monopod on a private containerd beside the same work done
// with bare CRI calls, which no agent can beat, in the same run and by turns, so
// that noise on the machine hits both. It prints medians and ratios as a table.
// Memory, idle CPU and binary size are the agent's own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"monopod/agent/e2e/rig"
)

// options are the flags.
type options struct {
	bare       bool
	containerd string
	monopod    string
	sizes      []int
	singles    int
	crashes    int
	rounds     int
	many       int
	idle       time.Duration
	json       string
	last       string
}

func main() {
	rig.Janitor()
	o, err := parse(os.Args[1:])
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	var sizes string
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	f.BoolVar(&o.bare, "bare", false, "measure bare CRI calls only")
	f.StringVar(&o.containerd, "containerd", rig.Latest, "containerd to measure on: "+rig.Distro+" or "+rig.Latest)
	f.StringVar(&o.monopod, "monopod", "", "binary to measure (default: build it)")
	f.StringVar(&sizes, "pods", "20,100", "sizes of the bursts")
	f.IntVar(&o.singles, "singles", 15, "single pods, one after the other")
	f.IntVar(&o.crashes, "crashes", 15, "how many of the single pods crash once")
	f.IntVar(&o.rounds, "rounds", 3, "bursts of each size")
	f.IntVar(&o.many, "many", 0, "measure the agent alone with so many pods, and nothing else")
	f.DurationVar(&o.idle, "idle", 30*time.Second, "how long to watch the idle agent at each size")
	f.StringVar(&o.json, "json", "", "write the samples to this file too")
	f.StringVar(&o.last, "last", "testdata/bench/last.json", "samples of an earlier measurement: counts that grew by 30 % are a failure")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	for s := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return o, fmt.Errorf("-pods %s: want numbers above 0, with commas between", sizes)
		}
		o.sizes = append(o.sizes, n)
	}
	return o, nil
}

// run measures and prints, and leaves the machine as it was.
func run(ctx context.Context, o options) (err error) {
	r, err := rig.Open(ctx, o.containerd)
	if err != nil {
		return err
	}
	defer func() {
		leaks, cerr := r.Close(context.WithoutCancel(ctx))
		if err == nil && len(leaks) > 0 {
			err = fmt.Errorf("left behind: %s", strings.Join(leaks, ", "))
		}
		if err == nil {
			err = cerr
		}
	}()
	if err := r.CRI.Pull(ctx, rig.Busybox); err != nil {
		return err
	}
	sides, err := contenders(r, o)
	if err != nil {
		return err
	}
	s := new(sheet)
	if o.many > 0 {
		err := measureMany(ctx, &bench{r, o, s}, sides[1].(*monopod), o.many)
		fmt.Print(s.markdown())
		return err
	}
	if err := measure(ctx, r, o, sides, s); err != nil {
		fmt.Print(s.markdown()) // what was measured until then
		return err
	}
	if !o.bare {
		if err := s.size(sides[1].(*monopod).agent.Binary); err != nil {
			return err
		}
	}
	fmt.Print(s.markdown())
	worse, err := s.grown(o.last) // before -json, which may be the same file
	if o.json != "" {
		err = errors.Join(err, s.writeJSON(o.json))
	}
	if len(worse) > 0 {
		err = errors.Join(err, fmt.Errorf("counts have grown:\n%s", strings.Join(worse, "\n")))
	}
	return err
}

// contenders returns bare CRI and, unless it is not wanted, monopod.
func contenders(r *rig.Rig, o options) ([]contender, error) {
	sides := []contender{newBare(r)}
	if o.bare {
		return sides, nil
	}
	if o.monopod == "" {
		var err error
		if o.monopod, err = rig.Build(r.Dir); err != nil {
			return nil, err
		}
	}
	m, err := newMonopod(r, o.monopod)
	return append(sides, m), err
}
