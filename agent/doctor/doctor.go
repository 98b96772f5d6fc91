// Package doctor examines a machine for what the agent needs of it.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/cri"
)

// Level is how much a finding matters.
type Level string

const (
	OK      Level = "ok"
	Warning Level = "warning" // some pods do not run, or not as they should
	Error   Level = "error"   // the agent, or most pods, do not run
)

// Finding is what a check found.
type Finding struct {
	Check   string `json:"check"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"` // a command, or a sentence with what to change
}

// Machine is the machine to examine.
type Machine struct {
	Config    config.Config // of the agent that runs there, or is to
	Ignored   []string      // settings of its file that have no effect
	Runtime   *cri.Client
	Endpoints []string // of Runtime, which is the first of them that answers
	NoStart   error    // why a managed runtime cannot be started; nil: it can
	Kubelet   string   // the process that is a kubelet, or has one inside; "": none
	Up        bool     // the agent answers on its socket
	Waits     []string // the settings that wait for a restart of the agent that is up
	Wrong     []string // other problems that the agent reports of its settings
	NoTCP     bool     // the agent that is up reports that it could not bind the TCP address
	Reports   []string // other problems that the agent that is up reports of itself
	Files     string   // the folder that holds /proc and /sys; "": /
	Now       time.Time
	User      int // who asks; 0: root

	version *rt.VersionResponse // of the runtime; nil: it does not answer
	silent  error               // why it does not answer; nil: it does
}

// file returns the path of a file of the kernel.
func (m *Machine) file(path string) string { return filepath.Join(cmp.Or(m.Files, "/"), path) }

// checks are all checks, in the order of their findings. Those that only ask the runtime are left out
// while it does not answer: the first one reports that, and each would wait for it once more.
var checks = []struct {
	name string
	run  func(context.Context, *Machine) []Finding
	asks bool // the runtime, and nothing else
}{
	{"runtime", runtime, false},
	{"pod network", network, true},
	{"pause image", pauseImage, true},
	{"images", wipedImages, true},
	{"images", damagedImages, true},
	{"cgroups", controllers, false},
	{"cgroup driver", cgroupDriver, false},
	{"manifests", manifestFolder, false},
	{"disk", disks, false},
	{"clock", clock, false},
	{"swap", swap, false},
	{"kernel", kernel, false},
	{"resolv.conf", resolvConf, false},
	{"endpoint", endpoint, false},
	{"agent", reports, false},
	{"other agents", others, false},
	{"settings", settings, false},
}

// Examine runs all checks. A check without a finding of its own is fine. To a user who is not root,
// for whom sockets and folders are closed, nothing would seem to run: no check is for them.
func Examine(ctx context.Context, m *Machine) []Finding {
	if m.User != 0 {
		f := fail("run it as root, as with sudo", "not examined: what monopod and the runtime have is closed to user %d", m.User)
		f.Check = "rights"
		return []Finding{f}
	}
	m.version, m.silent = m.Runtime.Version(ctx)
	var all []Finding
	for _, c := range checks {
		if c.asks && m.silent != nil {
			continue
		}
		found := c.run(ctx, m)
		for i := range found {
			found[i].Check = c.name
		}
		all = append(all, found...)
	}
	return all
}

// Failed reports whether a finding is an error.
func Failed(all []Finding) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return f.Level == Error })
}

func ok(format string, args ...any) Finding {
	return Finding{Level: OK, Message: fmt.Sprintf(format, args...)}
}

func warn(remedy, format string, args ...any) Finding {
	return Finding{Level: Warning, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

func fail(remedy, format string, args ...any) Finding {
	return Finding{Level: Error, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

// orOK returns what was found, or that all is well.
func orOK(found []Finding, format string, args ...any) []Finding {
	if len(found) == 0 {
		return []Finding{ok(format, args...)}
	}
	return found
}

// reports tells what the agent reports of itself.
func reports(_ context.Context, m *Machine) (found []Finding) {
	for _, text := range m.Reports {
		found = append(found, warn("", "%s", text))
	}
	if !m.Up {
		return orOK(found, "monopod does not run")
	}
	return orOK(found, "nothing is wrong with it")
}

// settings checks which settings are not in force.
func settings(_ context.Context, m *Machine) (found []Finding) {
	for _, text := range m.Ignored {
		found = append(found, warn("remove it from the file", "%s", text))
	}
	for _, p := range m.Config.Absent {
		f := warn("", "%s", p.Error())
		if checkpoint.IsNew(m.Config.Root) {
			f = fail("", "%s", p.Error())
		}
		found = append(found, f)
	}
	for _, text := range m.Wrong {
		found = append(found, fail("", "%s", text))
	}
	for _, text := range m.Waits {
		found = append(found, warn("restart monopod: pods run on meanwhile", "%s", text))
	}
	return orOK(found, "all of them count")
}
