package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/saidonce"
)

// Plugins are the credential providers of a node: programs that print the credentials for an
// image. LoadPlugins makes them.
type Plugins struct{ plugins []*plugin }

// lookup returns the answers of all providers for a repository. A failure of one is logged, and
// adds nothing.
func (all *Plugins) lookup(ctx context.Context, repository string) []Auth {
	if all == nil {
		return nil
	}
	var found []Auth
	for _, p := range all.plugins {
		if !slices.ContainsFunc(p.patterns, func(m pattern) bool { return m.matches(repository) }) {
			continue
		}
		entries, err := p.ask(ctx, repository)
		if ctx.Err() == nil && p.logged.IsNew(repository, err) {
			p.log.Warn("a credential provider gives no credentials; the image is pulled without", "provider", p.name, "image", repository, "err", err)
		}
		found = append(found, matching(entries, repository)...)
	}
	return found
}

// plugin is one provider.
type plugin struct {
	name, path string
	args, env  []string
	apiVersion string
	patterns   []pattern // of the repositories that it is run for
	cacheFor   time.Duration
	timeout    time.Duration
	log        *slog.Logger
	logged     saidonce.Errors // why it returned nothing, by repository

	mu      sync.Mutex
	flights map[string]*flight // in progress, by repository
	cache   map[string]cached  // by the scope of the answer
}

// flight is one run of the program, for all callers with the same request.
type flight struct {
	done    chan struct{}
	entries []entry
	err     error
}

type cached struct {
	entries []entry
	until   time.Time
}

// global is the key of an answer that is valid for all images.
const global = "global"

// ask returns the provider's answer for a repository, from the cache while its last answer is
// valid.
func (p *plugin) ask(ctx context.Context, repository string) ([]entry, error) {
	for {
		p.mu.Lock()
		if found, ok := p.cachedFor(repository); ok {
			p.mu.Unlock()
			return found, nil
		}
		f := p.flights[repository]
		if f == nil {
			f = &flight{done: make(chan struct{})}
			p.flights[repository] = f
			p.mu.Unlock()
			p.fly(ctx, f, repository)
			return f.entries, f.err
		}
		p.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !errors.Is(f.err, context.Canceled) { // else the first caller left
			return f.entries, f.err
		}
	}
}

// cachedFor: p.mu is held.
func (p *plugin) cachedFor(repository string) ([]entry, bool) {
	registry, _, _ := strings.Cut(repository, "/")
	for _, key := range []string{"image " + repository, "registry " + registry, global} {
		if c, ok := p.cache[key]; ok && time.Now().Before(c.until) {
			return c.entries, true
		}
	}
	return nil, false
}

func (p *plugin) fly(ctx context.Context, f *flight, repository string) {
	answer, err := p.exec(ctx, repository)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(f.done)
	delete(p.flights, repository)
	f.err = err
	if err != nil {
		return
	}
	if f.entries, f.err = answer.entries(); f.err != nil {
		return
	}
	registry, _, _ := strings.Cut(repository, "/")
	key := map[string]string{"Image": "image " + repository, "Registry": "registry " + registry, "Global": global}[answer.CacheKeyType]
	hold := p.cacheFor
	if answer.CacheDuration != nil {
		hold = answer.CacheDuration.Duration
	}
	now := time.Now()
	for old, c := range p.cache {
		if !now.Before(c.until) {
			delete(p.cache, old)
		}
	}
	if hold > 0 {
		p.cache[key] = cached{f.entries, now.Add(hold)}
	}
}

// pluginAnswer is a CredentialProviderResponse.
type pluginAnswer struct {
	Kind          string                 `json:"kind"`
	APIVersion    string                 `json:"apiVersion"`
	CacheKeyType  string                 `json:"cacheKeyType"`
	CacheDuration *metav1.Duration       `json:"cacheDuration"`
	Auth          map[string]dockerEntry `json:"auth"`
}

func (a *pluginAnswer) entries() ([]entry, error) {
	for key, e := range a.Auth {
		e.Auth = "" // not part of this contract
		a.Auth[key] = e
	}
	return entries(a.Auth)
}

// pluginLimit is how many bytes of a program's output are read.
const pluginLimit = 1 << 20

// exec runs the program and checks its answer. The error never contains what it printed as an
// answer.
func (p *plugin) exec(ctx context.Context, repository string) (*pluginAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	request, err := json.Marshal(map[string]string{"kind": "CredentialProviderRequest", "apiVersion": p.apiVersion, "image": repository})
	if err != nil {
		return nil, err
	}
	var out, complaint bounded
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.env, bytes.NewReader(request), &out, &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for processes that it left behind with our pipes
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("run %s: %w%s", p.path, err, complaint.lastLine())
	}
	a := &pluginAnswer{}
	if json.Unmarshal(out.kept.Bytes(), a) != nil {
		return nil, fmt.Errorf("run %s: it did not print a CredentialProviderResponse", p.path)
	}
	switch {
	case a.Kind != "CredentialProviderResponse" || a.APIVersion != p.apiVersion:
		return nil, fmt.Errorf("run %s: it printed a %q of %q, want a CredentialProviderResponse of %s", p.path, a.Kind, a.APIVersion, p.apiVersion)
	case !slices.Contains([]string{"Image", "Registry", "Global"}, a.CacheKeyType):
		return nil, fmt.Errorf("run %s: cacheKeyType %q is none of Image, Registry, Global", p.path, a.CacheKeyType)
	}
	return a, nil
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ kept bytes.Buffer }

func (b *bounded) Write(data []byte) (int, error) {
	b.kept.Write(data[:min(pluginLimit-b.kept.Len(), len(data))])
	return len(data), nil
}

// lastLine returns ": " and the last line, without what looks like a secret.
func (b *bounded) lastLine() string {
	lines := strings.Split(strings.TrimSpace(b.kept.String()), "\n")
	last := lines[len(lines)-1]
	if last == "" {
		return ""
	}
	return ": " + scrubText(last[:min(len(last), 300)], Auth{})
}
