package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"monopod/agent/e2e/writelog"
)

// record is a life of pods, as all writes to the disk and as what was known of it from
// outside.
type record struct {
	base  string // the disk before
	disk  *writelog.Disk
	log   *writelog.Log
	notes []note
}

// cut is a moment of a record at which the power goes.
type cut struct {
	seed   int64
	entry  int // that is not written any more
	moment string
}

// outcome is what a cut came to.
type outcome struct {
	boot, pods, all time.Duration // until its shell was there; from then until its pods were; all of it
	kept, lost      int           // pods whose manifest was on the disk
	waited          string        // the last of what had to go first
	err             error
}

func (o *outcome) verdict() string {
	switch {
	case o.err != nil:
		return "FAILED: " + o.err.Error()
	case o.waited != "":
		return "ok, once it was not so: " + inCell(o.waited)
	}
	return "ok"
}

// inCell cuts a text for a cell of the table: one line, its first 80 characters.
func inCell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:77], "") + "..."
	}
	return text
}

// cuts cuts the power n times in a recorded life, in those of its moments whose names match,
// one after the other, boots what is left of the disk, and prints a line of each. Lost pods,
// or anything else that is not as it should be, are an error at the end.
func (b *box) cuts(ctx context.Context, n int, seed int64, names string) error {
	b.ctx = ctx
	wanted, err := momentsNamed(names)
	if err != nil {
		return err
	}
	began := time.Now()
	r, err := b.recordLife(ctx)
	if err != nil {
		return fmt.Errorf("record a life of pods: %w\n%s", err, b.explain())
	}
	defer r.log.Close()
	b.discard()
	fmt.Printf("recorded %d writes and flushes in %s\n", r.log.Len(), seconds(time.Since(began)))
	const row = "%4s %5s %6s  %-24s %5s %5s %5s %5s %5s  %s\n"
	fmt.Printf(row, "cut", "seed", "write", "moment", "boot", "pods", "all", "kept", "lost", "verdict")
	failed := 0
	for k := range n {
		c := r.cutOf(seed+int64(k), wanted)
		o := b.survive(ctx, r, c)
		if o.err != nil && ctx.Err() == nil { // the same disk again: what is lost on it is lost again
			fmt.Printf("%s\n%s\ncut %d FAILED; once more\n", o.verdict(), b.explain(), k+1)
			b.discard()
			o = b.survive(ctx, r, c)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		fmt.Printf(row, fmt.Sprint(k+1), fmt.Sprint(c.seed), fmt.Sprint(c.entry), c.moment,
			seconds(o.boot), seconds(o.pods), seconds(o.all), fmt.Sprint(o.kept), fmt.Sprint(o.lost), o.verdict())
		if o.err != nil {
			failed++
			fmt.Println(b.explain())
		}
		b.discard()
	}
	fmt.Println("all in", seconds(time.Since(began)))
	if failed > 0 {
		return fmt.Errorf("%d of %d cuts cost something", failed, n)
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

// momentsNamed returns the numbers of the moments whose names match a regular expression.
func momentsNamed(names string) (numbers []int, err error) {
	named, err := regexp.Compile(names)
	if err != nil {
		return nil, fmt.Errorf("-during: %w", err)
	}
	for k, m := range moments {
		if named.MatchString(m.name) {
			numbers = append(numbers, k)
		}
	}
	if numbers == nil {
		return nil, fmt.Errorf("-during: no name of a moment matches %q", names)
	}
	return numbers, nil
}

// cutOf chooses a moment of the wanted ones: each of what went on is as likely as any
// other, however much it wrote.
func (r *record) cutOf(seed int64, wanted []int) cut {
	random := rand.New(rand.NewSource(seed))
	var begins []note
	for _, n := range r.notes {
		if n.moment != "" {
			begins = append(begins, n)
		}
	}
	k := wanted[random.Intn(len(wanted))]
	end := r.log.Len()
	if k+1 < len(begins) {
		end = begins[k+1].entry
	}
	return cut{seed, begins[k].entry + 1 + random.Intn(max(end-begins[k].entry, 1)), begins[k].moment}
}

// survive boots what a cut leaves and checks it. The machine stays for explain.
func (b *box) survive(ctx context.Context, r *record, c cut) (o outcome) {
	began := time.Now()
	defer func() { o.all = time.Since(began) }()
	b.count++
	dir := filepath.Join(b.dir, fmt.Sprint(b.count))
	if o.err = os.Mkdir(dir, 0o755); o.err != nil {
		return o
	}
	b.machine = &machine{hardware: usual, dir: dir, kernel: b.disk, payload: b.payload, accel: b.accel, words: b.maker.words}
	if o.err = r.leave(c, b.machine.disk()); o.err != nil {
		return o
	}
	booting := time.Now()
	o.err = b.machine.boot(ctx, bootIn)
	o.boot = time.Since(booting)
	if o.err == nil {
		o.err = b.checkCut(r, c, &o)
	}
	return o
}

// leave makes the disk that a cut leaves.
func (r *record) leave(c cut, disk string) error {
	if err := copyDisk(r.base, disk); err != nil {
		return err
	}
	f, err := os.OpenFile(disk, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.log.Replay(f, min(c.entry, r.log.Len()), rand.New(rand.NewSource(c.seed)))
}

func copyDisk(from, to string) error {
	if out, err := exec.Command("cp", "--sparse=always", "--reflink=auto", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the disk: %w: %s", err, out)
	}
	return nil
}

// ownAddresses has the plugin host-local keep its addresses where a boot frees them: it
// syncs none, and what a power cut leaves empty it never frees (see docs/systemd.md).
const ownAddresses = `sed -i 's|"type": "host-local",|& "dataDir": "/run/cni/networks",|' /etc/cni/net.d/*.conflist
grep -q dataDir /etc/cni/net.d/*.conflist; systemctl restart $unit`

// stopsPods has a shutdown stop the pods first, as their user would.
const stopsPods = `printf 'shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 5s\n' >>/etc/monopod/config.yaml
systemctl restart monopod`

// recordLife boots a machine, installs everything on it, and records from then what
// pods that live there write.
func (b *box) recordLife(ctx context.Context) (*record, error) {
	b.serves = true
	defer func() { b.serves = false }()
	if err := b.open(ctx, usual); err != nil {
		return nil, err
	}
	if err := b.reset(ctx); err != nil {
		return nil, err
	}
	if _, err := b.sh(strings.Join([]string{b.maker.sturdy, ownAddresses, stopsPods, "sync"}, "\n")); err != nil {
		return nil, err
	}
	r := &record{base: filepath.Join(b.dir, "base.img"), disk: b.machine.served}
	err := r.disk.Record(filepath.Join(b.dir, "writes"), func() error { return copyDisk(b.machine.disk(), r.base) })
	if err != nil {
		return nil, err
	}
	for _, m := range moments {
		began := time.Now()
		if err := b.pass(m, r); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Printf("%-24s %5s\n", m.name, seconds(time.Since(began)))
	}
	r.log = r.disk.Log()
	return r, nil
}
