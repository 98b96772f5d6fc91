package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"monopod/cgroups"
	"monopod/cri/critest"
	"monopod/manifests"
)

// goldenCase is what the kubelet did with one manifest.
type goldenCase struct {
	Manifest json.RawMessage   `json:"manifest"`
	Errors   map[string]string `json:"errors"` // what the runtime answered, by method
	Facts    facts             `json:"facts"`
}

// goldenSettings are the recordings and the machines they were made on.
var goldenSettings = []struct {
	file  string
	node  func(*node)
	left  string  // beginnings of facts that are left out
	least float64 // percent of the facts that must be equal, or differ as they are meant to
}{
	{"cgroup1-cgroupfs", func(n *node) { n.CgroupV2, n.Memory, n.Cgroups.Driver = false, 30e9, cgroups.Cgroupfs }, "cgroup[", 99.2},
	{"cgroup2-cgroupfs", func(n *node) { n.CgroupV2, n.Memory, n.Cgroups.Driver = true, 3.1e9, cgroups.Cgroupfs }, "cgroup[ stop[", 100},
	{"cgroup2-systemd", func(n *node) { n.CgroupV2, n.Memory, n.Cgroups.Driver = true, 3.1e9, cgroups.Systemd }, "cgroup[ stop[", 100},
}

// takeRoot are cases that only root can set up: they change owners and mount.
var takeRoot = []string{"fsgroup-emptydir", "subpath", "subpath-expr"}

func TestPodsAreMadeAsTheKubeletMadeThem(t *testing.T) {
	meant := readDifferences(t, "../testdata/golden/differences.md")
	for _, s := range goldenSettings {
		t.Run(s.file, func(t *testing.T) {
			cases := readGolden(t, s.file)
			if os.Geteuid() != 0 {
				t.Logf("NOT compared, because this is not root: %v", takeRoot)
				maps.DeleteFunc(cases, func(name string, _ goldenCase) bool { return slices.Contains(takeRoot, name) })
			}
			got := make(map[string]facts, len(cases))
			for _, name := range slices.Sorted(maps.Keys(cases)) {
				ok := t.Run(name, func(t *testing.T) { got[name] = replay(t, cases[name], s.node) })
				if !ok {
					return
				}
			}
			all, equal, asMeant, notYet := 0, 0, 0, 0
			for _, name := range slices.Sorted(maps.Keys(cases)) {
				for _, d := range differences(cases[name].Facts, got[name], strings.Fields(s.left)) {
					all++
					listed := meant.find(name, d.key)
					switch {
					case d.equal:
						equal++
					case listed == nil:
						t.Errorf("%s: %s: the kubelet has %v, we have %v", name, d.key, d.want, d.got)
					case listed.notYet:
						notYet, listed.used = notYet+1, true
					default:
						asMeant, listed.used = asMeant+1, true
					}
				}
			}
			score := 100 * float64(equal+asMeant) / float64(all)
			t.Logf("%.2f %% of %d facts in %d cases: %d equal, %d differ as meant; %d are not yet equal",
				score, all, len(cases), equal, asMeant, notYet)
			if score < s.least && os.Geteuid() == 0 {
				t.Errorf("%.2f %% of the facts are as they should be, it was %.2f %%", score, s.least)
			}
		})
	}
	for _, d := range meant {
		if !d.used {
			t.Errorf("differences.md: %q stands for no difference", d.line)
		}
	}
}

func readGolden(t *testing.T, name string) map[string]goldenCase {
	t.Helper()
	b, err := os.ReadFile("../testdata/golden/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]goldenCase{}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// difference is a fact on both sides; nil: it has none.
type difference struct {
	key       string
	want, got any
	equal     bool
}

// differences sets the facts side by side, but for those that begin with one
// of left: cgroup files take a kernel.
func differences(want, got facts, left []string) []difference {
	keys := map[string]bool{}
	for _, side := range []facts{want, got} {
		for k := range side {
			keys[k] = !slices.ContainsFunc(left, func(l string) bool { return strings.HasPrefix(k, l) })
		}
	}
	maps.DeleteFunc(keys, func(_ string, counts bool) bool { return !counts })
	var out []difference
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		w, inWant := want[k]
		g, inGot := got[k]
		out = append(out, difference{k, w, g, inWant == inGot && reflect.DeepEqual(w, g)})
	}
	return out
}

// meantDifference is a line of differences.md: CASE-REGEX: KEY-REGEX  # why
type meantDifference struct {
	line      string
	name, key *regexp.Regexp
	notYet    bool // it will go
	used      bool
}

type meantDifferences []*meantDifference

// readDifferences reads the lines of a list of differences, which are indented
// as code; the others are prose.
func readDifferences(t *testing.T, path string) meantDifferences {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out meantDifferences
	notYet := false
	for line := range strings.Lines(string(b)) {
		rule, code := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if !code {
			notYet = notYet || strings.HasPrefix(rule, "## Not yet")
			continue
		}
		rule, why, _ := strings.Cut(rule, "  # ")
		name, key, ok := strings.Cut(rule, ": ")
		if !ok || why == "" {
			t.Fatalf("%s: %q is not CASE-REGEX: KEY-REGEX  # why", path, rule)
		}
		out = append(out, &meantDifference{rule, regexp.MustCompile("^(" + name + ")$"), regexp.MustCompile("^(" + key + ")$"), notYet, false})
	}
	return out
}

// find returns the line that a difference is listed in, or nil.
func (m meantDifferences) find(name, key string) *meantDifference {
	for _, d := range m {
		if d.name.MatchString(name) && d.key.MatchString(key) {
			return d
		}
	}
	return nil
}

// replay gives the manifest to an agent on a runtime that answers as the
// recorded one did, and returns the facts.
func replay(t *testing.T, c goldenCase, set func(*node)) facts {
	dir := t.TempDir()
	text := strings.ReplaceAll(string(c.Manifest), "/tmp/golden-hp", filepath.Join(dir, "golden-hp"))
	resolv := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(resolv, []byte("nameserver 10.0.0.10\nsearch corp.example\noptions ndots:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var got recorded
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, Runtime: critest.New(t), dir: filepath.Join(dir, "root"), log: &lines{}}
		r.configure = func(c *Config) { c.NodeName, c.ResolvConf = "node1", resolv }
		r.machine = func(n *node) {
			set(n)
			n.HostIPs, n.HugePageSizes, n.SwapController = []string{"192.0.2.2"}, []string{"2MB", "1GB"}, true
		}
		r.AddImage("localhost/busybox:1")
		r.start()
		defer func() { r.stop() }()
		pods, problems := manifests.Decode("/m/x.yaml", []byte(text), r.options)
		for _, p := range problems {
			t.Log(p)
		}
		r.OnExec(func(_ context.Context, _ critest.Container, command []string) (string, int32, error) {
			if command[0] == "false" {
				return "", 1, nil
			}
			return "", 0, nil
		})
		c.world(r, pods)
		r.offers <- manifests.Snapshot{Complete: true, Pods: pods}
		r.after(8 * time.Second)
		if len(pods) > 0 {
			if p, ok := r.store.Pod(pods[0].Key().String()); ok {
				got.pod = values(t, p)
			}
		}
		r.offers <- manifests.Snapshot{Complete: true}
		r.after(45 * time.Second)
		for _, c := range r.Calls() {
			if c.Request != nil {
				got.calls = append(got.calls, recordedCall{c.Method, messageValues(t, c.Request), messageValues(t, c.Response)})
			}
		}
	})
	v := view(got)
	for k, x := range v {
		if s, ok := x.(string); ok {
			v[k] = strings.ReplaceAll(s, filepath.Join(dir, "golden-hp"), "/tmp/golden-hp")
		}
	}
	return v
}

// world makes the runtime answer, and the containers' programs do, what they
// did when it was recorded.
func (c goldenCase) world(r *rig, pods []*manifests.Pod) {
	for _, p := range pods {
		for _, k := range allContainers(p.Pod) {
			r.Program(k.Name, program(slices.Concat(k.Command, k.Args)))
			if text, ok := c.Errors["StartContainer"]; ok {
				r.Program(k.Name, critest.FailsToStart(errors.New(text)))
			}
		}
	}
	for _, method := range []string{"CreateContainer", "PullImage"} {
		if text, ok := c.Errors[method]; ok {
			r.Fault(critest.On(method).Fail(codes.Unknown, text))
		}
	}
}

var (
	exitIn  = regexp.MustCompile(`exit (\d+)$`)
	writeTo = regexp.MustCompile(`^echo (.*) >(/\S+)$`)
)

// program is what the few commands of the corpus do.
func program(command []string) critest.Program {
	script := command[len(command)-1]
	if len(command) == 1 || strings.HasPrefix(script, "trap ") || strings.Contains(script, "httpd") || strings.HasSuffix(script, "3600") {
		return critest.Runs()
	}
	var after time.Duration
	var code int
	var path, text string
	for part := range strings.SplitSeq(script, "; ") {
		if m := writeTo.FindStringSubmatch(part); m != nil {
			path, text = m[2], m[1]+"\n"
		}
		if m := exitIn.FindStringSubmatch(part); m != nil {
			code, _ = strconv.Atoi(m[1])
		}
		if s, ok := strings.CutPrefix(part, "sleep "); ok {
			after, _ = time.ParseDuration(s + "s")
		}
	}
	return critest.ExitsAfter(after, int32(code)).Writes(path, text)
}

// messageValues returns a message as the values of its JSON, with the names of the protocol.
func messageValues(t *testing.T, m proto.Message) map[string]any {
	if m == nil {
		return nil
	}
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return values(t, json.RawMessage(b))
}

func values(t *testing.T, v any) map[string]any {
	b, err := json.Marshal(v)
	if err == nil {
		var out map[string]any
		if err = json.Unmarshal(b, &out); err == nil {
			return out
		}
	}
	t.Fatal(fmt.Errorf("as JSON: %w", err))
	return nil
}
