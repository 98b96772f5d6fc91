// Package podresolv keeps the resolv.conf of pods as the one of the machine.
package podresolv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/panics"
	"monopod/agent/podhosts"
	"monopod/agent/podspec"
	"monopod/agent/saidonce"
	"monopod/agent/volume"
	"monopod/agent/wake"
	"monopod/manifests"
)

// every is how often the machine's file is read. It is polled, as it may be a link to a file in
// another folder, and be replaced by rename, by either of which a watch would be lost.
const every = 2 * time.Second

// Config is what a Keeper needs.
type Config struct {
	Root    string               // the agent's root dir
	File    string               // the machine's resolv.conf; "": none
	Host    func() *podspec.Host // the machine at present
	Pods    func() []*v1.Pod     // the reported pods
	On      func() bool          // whether pods follow the machine's file
	Problem func(text string)    // reports why pods keep the name servers that they have; "": they do not
	Fault   func()               // called for each panic
	Log     *slog.Logger
}

// Keeper writes the resolv.conf of pods: when a container starts, and in place while containers
// have it mounted. Any goroutine may call its methods.
type Keeper struct {
	config Config
	woken  wake.Slot // of Run: the setting may have changed

	mu    sync.Mutex // guards what follows, and is held while a file is written
	seen  []byte     // the machine's file, as read last
	taken []byte     // the content of it that pods have
	conf  *podspec.ResolvConf
	wrong string // as reported last
	due   bool   // not all pods have conf
	said  saidonce.Errors
}

// New returns a Keeper, which follows the machine's file while it runs.
func New(c Config) *Keeper { return &Keeper{config: c, woken: wake.New()} }

// Wake makes Run ask again whether pods follow the machine's file.
func (k *Keeper) Wake() { k.woken.Wake() }

// isOn reports whether there is a file that pods follow.
func (k *Keeper) isOn() bool { return k.config.On() && k.config.File != "" }

// Path is the file that containers of a pod see as /etc/resolv.conf.
func Path(root string, p *v1.Pod) string { return volume.ResolvPath(root, string(p.UID)) }

// follows reports whether the name servers of a pod may be those of the machine.
func follows(p *v1.Pod) bool { return p.Spec.DNSPolicy != v1.DNSNone }

// Write writes a pod's file for the containers that start from now on, and returns its path. It
// returns "" for a pod that has what the runtime gave its sandbox. A nil Keeper writes nothing.
func (k *Keeper) Write(p *v1.Pod) (string, error) {
	if k == nil || !k.isOn() || !follows(p) {
		return "", nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conf == nil {
		k.look()
	}
	path := Path(k.config.Root, p)
	if _, err := os.Lstat(path); err == nil && k.conf == nil { // the machine's is unusable: it keeps its own
		return path, nil
	}
	return path, podhosts.Rewrite(path, k.contentOf(p))
}

// contentOf returns a pod's resolv.conf. k.mu is held.
func (k *Keeper) contentOf(p *v1.Pod) []byte {
	n := *k.config.Host()
	if k.conf != nil {
		n.Resolv = *k.conf
	}
	return podspec.ResolvConfOf(p, &n)
}

// Run follows the machine's file until ctx ends. While pods do not follow it, it sleeps.
func (k *Keeper) Run(ctx context.Context) {
	for {
		if err := panics.Contain(k.pass); panics.In(err) != nil {
			k.config.Fault()
			k.config.Log.Error("pods do not follow the machine's name servers; trying again", panics.Logged(err)...)
		}
		var again <-chan time.Time
		if k.isOn() {
			again = time.After(every)
		}
		select {
		case <-ctx.Done():
			return
		case <-k.woken:
		case <-again:
		}
	}
}

// pass reads the machine's file, and gives pods what is new in it.
func (k *Keeper) pass() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.isOn() {
		k.conf, k.taken = nil, nil
		k.report("")
		return
	}
	k.look()
	if !k.due || k.conf == nil {
		return
	}
	k.due = false
	for _, p := range k.config.Pods() {
		k.update(p)
	}
}

// look reads the machine's file. A content counts once it was read twice, as a program may be
// writing it; the first one counts at once. k.mu is held.
func (k *Keeper) look() {
	data, err := manifests.ReadFile(k.config.File)
	if err != nil {
		k.report(fmt.Sprintf("%s cannot be read: %v", k.config.File, err))
		return
	}
	isStable := k.taken == nil || bytes.Equal(data, k.seen)
	k.seen = data
	if !isStable {
		return
	}
	conf, err := parse(data)
	switch {
	case err != nil:
		k.report(fmt.Sprintf("%s is not used: %v", k.config.File, err))
		return
	case !bytes.Equal(data, k.taken):
		k.conf, k.taken, k.due = &conf, data, true
	}
	k.report("")
}

// parse reads a resolv.conf that pods may have: one that names servers.
func parse(data []byte) (podspec.ResolvConf, error) {
	conf, err := podspec.ParseResolvConf(data)
	if err != nil {
		return conf, err
	}
	if len(conf.Servers) == 0 {
		return conf, errors.New("it names no name server")
	}
	for _, server := range conf.Servers {
		if _, err := netip.ParseAddr(server); err != nil {
			return conf, fmt.Errorf("%q is no address of a name server", server)
		}
	}
	return conf, nil
}

// report reports why pods keep what they have, and that it is over.
func (k *Keeper) report(why string) {
	if why == k.wrong {
		return
	}
	k.wrong = why
	if why != "" {
		why += ": pods keep the name servers that they have"
		k.config.Log.Warn(why)
	}
	k.config.Problem(why)
}

// update changes the file of a pod that has one. k.mu is held.
func (k *Keeper) update(p *v1.Pod) {
	path := Path(k.config.Root, p)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || !follows(p) {
		return
	}
	err := podhosts.Rewrite(path, k.contentOf(p))
	if err != nil {
		k.due = true
	}
	name := manifests.KeyOf(p).String()
	if k.said.IsNew(name, err) {
		k.config.Log.Warn("resolv.conf is not up to date; trying again", "pod", name, "err", err)
	}
	if err == nil {
		k.config.Log.Info("name servers follow the machine", "pod", name, "servers", strings.Join(k.conf.Servers, " "))
	}
}
