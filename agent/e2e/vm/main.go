// Command vm tests monopod as most people run it: as a systemd unit of its Debian
// package, on a machine of its own with cgroup v2. It boots one, runs the trials of
// the table, and prints what came of each; a trial that fails makes the exit code 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"monopod/agent/e2e/rig"
)

func main() {
	disk := flag.String("disk", "bin/vm", "folder of the disk, the kernel and its initrd")
	names := flag.String("trials", "", "run the trials whose names match this regular expression; ^$ only boots")
	short := flag.Bool("short", false, "leave out the trials that take long, and say which")
	cuts := flag.Int("cuts", 0, "cut the power so often in a recorded life of pods, instead of the trials")
	crio := flag.String("crio", "", "folder of a CRI-O's programs, crio and pinns, which takes the place of containerd")
	oci := flag.String("oci", "runc", "with -crio: what runs containers, runc or crun")
	seed := flag.Int64("seed", 1, "of the moments of the cuts, and of what they leave of the last writes")
	in := flag.String("during", "", "cut only in those moments of the life whose names match this regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := func(ctx context.Context, b *box) error { return b.trials(ctx, *names, *short) }
	if *cuts > 0 {
		do = func(ctx context.Context, b *box) error { return b.cuts(ctx, *cuts, *seed, *in) }
	}
	b := &box{maker: ofContainerd}
	if *crio != "" {
		b.maker = ofCRIO(*oci)
	}
	if err := b.do(ctx, *disk, *crio, do); err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(1)
	}
}

// result is what came of a trial.
type result struct {
	trial
	err        error
	took       time.Duration
	kept, lost int  // running containers that the trial left alone, as it should, or did not
	again      bool // it failed once before
}

// do makes the disk of what is tested, with the CRI-O in a folder if there is one, and does something
// with the box.
func (b *box) do(ctx context.Context, disk, crio string, do func(ctx context.Context, b *box) error) error {
	began := time.Now()
	dir, err := os.MkdirTemp("", "monopod-vm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	if b.disk, err = filepath.Abs(disk); err != nil {
		return err
	}
	if b.payload, err = makePayload(dir, crio, b.maker.oci); err != nil {
		return err
	}
	defer func() { b.discard() }()
	fmt.Printf("payload made in %.0f s\n", time.Since(began).Seconds())
	return do(ctx, b)
}

// trials runs those of the table whose names match, and prints what came of them.
func (b *box) trials(ctx context.Context, names string, short bool) error {
	wanted, err := regexp.Compile(names)
	if err != nil {
		return fmt.Errorf("-trials: %w", err)
	}
	began := time.Now()
	if err := b.open(ctx, usual); err != nil {
		return err
	}
	fmt.Printf("booted with %s in %.0f s\n", b.accel, time.Since(began).Seconds())
	var results []result
	left := map[string][]string{}
	for _, t := range trials {
		if !wanted.MatchString(t.name) {
			continue
		}
		if why := t.leftOut(b.maker.usual.version == rig.CRIO, names != "", short); why != "" {
			left[why] = append(left[why], t.name)
			continue
		}
		r := b.try(ctx, t)
		if r.err != nil && short && ctx.Err() == nil { // the machine below the emulator may have other work
			fmt.Printf("%s FAILED; once more, on a new machine\n", t.name)
			r = b.try(ctx, t)
			r.again = true
		}
		results = append(results, r)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return report(results, left, time.Since(began))
}

// report prints the table, what all took, and which trials were left out for what reason.
func report(results []result, left map[string][]string, took time.Duration) error {
	failed := 0
	fmt.Printf("\n%-28s %-7s %7s %5s %5s\n", "trial", "result", "seconds", "kept", "lost")
	for _, r := range results {
		word := "ok"
		if r.again {
			word = "2nd try"
		}
		if r.err != nil {
			word = "FAILED"
			failed++
		}
		fmt.Printf("%-28s %-7s %7.0f %5d %5d\n", r.name, word, r.took.Seconds(), r.kept, r.lost)
	}
	fmt.Printf("%-28s %-7s %7.0f\n", "all", "", took.Seconds())
	for _, why := range slices.Sorted(maps.Keys(left)) {
		fmt.Printf("\nLEFT OUT, as %s: %s\n", why, strings.Join(left[why], ", "))
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d trials failed", failed, len(results))
	}
	return nil
}

// try runs one trial on the machine; one that failed is given up with it.
func (b *box) try(ctx context.Context, t trial) result {
	began := time.Now()
	b.kept, b.lost = 0, 0
	err := b.open(ctx, t.on)
	if err == nil {
		err = b.reset(ctx)
	}
	if err == nil {
		err = b.refit(t.on)
	}
	if err == nil {
		err = t.run(b)
	}
	if err == nil && b.lost > 0 {
		err = errors.New("containers were lost")
	}
	r := result{trial: t, err: err, took: time.Since(began), kept: b.kept, lost: b.lost}
	fmt.Printf("%-28s %6.0f s\n", t.name, r.took.Seconds())
	if err != nil {
		fmt.Printf("%s: %v\n%s\n", t.name, err, b.explain())
		b.discard()
	}
	return r
}
