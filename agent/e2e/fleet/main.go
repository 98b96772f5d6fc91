// Command fleet measures what ten thousand nodes cost that take their manifests from one static web
// server: it runs that many Fetchers in one process and a file server in another, and prints a table.
// How even their requests are when power, or the server, comes back is measured on a clock that
// runs faster, by the tests of manifests/fetch.
package main

import (
	"context"
	"crypto/ed25519"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"monopod/manifests"
	"monopod/manifests/fetch"
	"monopod/manifests/signature"
)

func main() {
	boxes := flag.Int("boxes", 10000, "how many nodes ask")
	every := flag.Duration("every", 20*time.Second, "the time between two requests of each")
	serve := flag.String("serve", "", "be the server of this folder (fleet starts it itself)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *serve != "" {
		err = serveFiles(ctx, *serve)
	} else {
		err = measure(ctx, *boxes, *every)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// fleet is the nodes and what they have.
type fleet struct {
	dir   string // that is served
	key   ed25519.PrivateKey
	every time.Duration
	boxes int
	has   [releases]atomic.Int64 // how many nodes have got each release, by serial number
	wrong atomic.Int64           // answers that were a problem
}

// releases is one more than the highest serial number.
const releases = 5

func measure(ctx context.Context, boxes int, every time.Duration) error {
	dir, err := os.MkdirTemp("", "monopod-fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	key, _, err := signature.NewKey()
	if err != nil {
		return err
	}
	f := &fleet{dir: dir, key: key, every: every, boxes: boxes}
	if err := f.furnish(); err != nil {
		return err
	}
	s, err := startServer(ctx, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	before := memory()
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for n := range boxes {
		f.start(ctx, &all, s.url, n)
	}
	err = f.story(ctx, s, before)
	cancel()
	all.Wait()
	return err
}

// furnish writes the first release, and leads all nodes to it.
func (f *fleet) furnish() error {
	if err := os.Mkdir(filepath.Join(f.dir, "boxes"), 0o755); err != nil {
		return err
	}
	if err := f.write(1, true); err != nil {
		return err
	}
	return f.lead(0, f.boxes, 1)
}

// write writes a release, with its own signature or that of another content.
func (f *fleet) write(serial int, isSigned bool) error {
	dir := filepath.Join(f.dir, fmt.Sprint("release", serial))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	signed := content(serial)
	if !isSigned {
		signed = nil
	}
	if err := os.WriteFile(filepath.Join(dir, "pods.yaml.sig"), signature.Sign(f.key, signed), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "pods.yaml"), content(serial), 0o644)
}

func content(serial int) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: List
metadata: {annotations: {monopod.serial: "%d"}}
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: sensor}
  spec:
    containers:
    - name: main
      image: registry.example.com/sensor:%[1]d
`, serial)
}

// lead lets nodes have a release: their names lead to its folder.
func (f *fleet) lead(from, to, serial int) error {
	for n := from; n < to; n++ {
		next := filepath.Join(f.dir, "next")
		if err := os.Symlink(fmt.Sprint("../release", serial), next); err != nil {
			return err
		}
		if err := os.Rename(next, filepath.Join(f.dir, "boxes", box(n))); err != nil {
			return err
		}
	}
	return nil
}

func box(n int) string { return fmt.Sprint("edge", n) }

// start starts one node, which has the first release from before.
func (f *fleet) start(ctx context.Context, all *sync.WaitGroup, url string, n int) {
	public := f.key.Public().(ed25519.PublicKey)
	src := fetch.New(fetch.Settings{
		URL: manifests.NodeURL(url+"/boxes/{node}/pods.yaml", box(n)), Node: box(n), Every: f.every, PublicKey: public,
		Known: &manifests.Answer{Data: content(1), Signer: signature.Text(public), Serial: 1},
	})
	all.Go(func() { src.Run(ctx) })
	all.Go(func() {
		for {
			select {
			case a := <-src.Answers():
				if a.Problem != "" {
					f.wrong.Add(1)
				}
				f.has[a.Serial].Add(1)
			case <-ctx.Done():
				return
			}
		}
	})
}

// story has the fleet live, and prints the figures.
func (f *fleet) story(ctx context.Context, s *server, before uint64) error {
	fmt.Printf("| %d nodes, a request every %s each | |\n|---|---|\n", f.boxes, f.every)
	if _, err := f.during(ctx, s, 2*f.every); err != nil { // connections, first requests
		return err
	}
	c, err := f.during(ctx, s, 3*f.every)
	if err != nil {
		return err
	}
	seconds := (3 * f.every).Seconds()
	row("bytes of a request with nothing new, both ways", "%d", c.Bytes/max(c.Requests, 1))
	row("of these requests answered with 304", "%.1f %%", 100*float64(c.Unmodified)/float64(max(c.Requests, 1)))
	row("requests in a second: on average, at most", "%.0f, %d", float64(c.Requests)/seconds, c.Most)
	row("CPU of the server", "%.1f %% of a core", 100*c.CPU.Seconds()/seconds)
	row("memory of each node's requests", "%d KiB", (memory()-before)/uint64(f.boxes)/1024)

	hundredth := max(f.boxes/100, 1)
	if err := f.write(2, true); err != nil {
		return err
	}
	if err := f.release(ctx, s, "a release for 1 %", 0, hundredth, 2); err != nil {
		return err
	}
	if err := f.release(ctx, s, "the same for all", hundredth, f.boxes, 2); err != nil {
		return err
	}
	return f.badPush(ctx, s)
}

// release leads nodes to a release, and prints how soon they have it.
func (f *fleet) release(ctx context.Context, s *server, name string, from, to, serial int) error {
	start := time.Now()
	if err := f.lead(from, to, serial); err != nil {
		return err
	}
	if err := f.wait(ctx, serial, to); err != nil {
		return err
	}
	took := time.Since(start)
	c, err := s.counts()
	row(name, "%d nodes have it after %.0f s; %d requests in a second at most", f.has[serial].Load(), took.Seconds(), c.Most)
	return err
}

// badPush gives all nodes a release with a signature that is wrong, and after two minutes the right
// one.
func (f *fleet) badPush(ctx context.Context, s *server) error {
	if err := f.write(3, false); err != nil {
		return err
	}
	if err := f.lead(0, f.boxes, 3); err != nil {
		return err
	}
	c, err := f.during(ctx, s, 2*time.Minute)
	if err != nil {
		return err
	}
	row("a release with a wrong signature, for 2 minutes", "%d nodes take it, %d say so; %d requests in a second at most",
		f.has[3].Load(), f.wrong.Load(), c.Most)
	if err := f.write(3, true); err != nil {
		return err
	}
	return f.release(ctx, s, "then the right one", 0, f.boxes, 3)
}

// wait waits until so many nodes have a release.
func (f *fleet) wait(ctx context.Context, serial, nodes int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for f.has[serial].Load() < int64(nodes) {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d of %d nodes have release %d: %w", f.has[serial].Load(), nodes, serial, ctx.Err())
		}
	}
	return nil
}

// during returns what the server counts in a time.
func (f *fleet) during(ctx context.Context, s *server, d time.Duration) (counts, error) {
	if _, err := s.counts(); err != nil {
		return counts{}, err
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return counts{}, ctx.Err()
	}
	return s.counts()
}

// memory returns the bytes of heap and stacks that are in use.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

func row(name, format string, values ...any) {
	fmt.Printf("| %s | %s |\n", name, fmt.Sprintf(format, values...))
}
