package agent

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/cri/critest"
)

// own is the manifest of a pod with users of its own, which has a volume.
func own(name string) string {
	return strings.Replace(manifest(name, "img:1", "hostUsers: false", "volumes: [{name: d, emptyDir: {}}]"),
		"name: c,", "name: c, volumeMounts: [{name: d, mountPath: /d}],", 1)
}

// usersOf returns the first id of a pod's users, after checking that sandbox,
// container, its mounts and the file all say the same.
func usersOf(r *rig, pod string) uint32 {
	r.Helper()
	s, _ := r.Sandbox(pod)
	c, ok := r.Container(pod + "/c")
	if !ok {
		r.Fatalf("%s has no container: %+v", pod, condition0(r.status("default/"+pod)))
	}
	u := s.Config.Linux.SecurityContext.NamespaceOptions.UsernsOptions
	if u.Mode != rt.NamespaceMode_POD || len(u.Uids) != 1 || len(u.Gids) != 1 {
		r.Fatalf("%s has the users %v", pod, u)
	}
	all := []*rt.IDMapping{u.Gids[0]}
	v := c.Config.Linux.SecurityContext.NamespaceOptions.UsernsOptions
	for _, m := range c.Config.Mounts {
		all = append(all, one(r, m.UidMappings), one(r, m.GidMappings))
	}
	if all = append(all, one(r, v.Uids), one(r, v.Gids)); v.Mode != rt.NamespaceMode_POD || len(all) != 1+2*3+2 {
		r.Errorf("%s: the container has %v and %d mounts", pod, v, len(c.Config.Mounts))
	}
	first := u.Uids[0].HostId
	for _, m := range append(all, u.Uids[0]) {
		if m.HostId != first || m.ContainerId != 0 || m.Length != 65536 || first < 65536 || first%65536 != 0 {
			r.Errorf("%s: %v, want 65536 ids from %d on", pod, m, first)
		}
	}
	b, err := os.ReadFile(filepath.Join(r.dir, "pods", s.Config.Metadata.Uid, "userns"))
	entry, _ := json.Marshal(map[string]uint32{"hostId": first, "containerId": 0, "length": 65536})
	var got, want any
	text := `{"uidMappings":[` + string(entry) + `],"gidMappings":[` + string(entry) + `]}`
	if err = errors.Join(err, json.Unmarshal(b, &got), json.Unmarshal([]byte(text), &want)); err != nil || !jsonEqual(got, want) {
		r.Errorf("%s: the file says %s (%v), want %s", pod, b, err, text)
	}
	return first
}

func one(r *rig, m []*rt.IDMapping) *rt.IDMapping {
	r.Helper()
	if len(m) != 1 {
		r.Fatalf("mappings are %v, want one", m)
	}
	return m[0]
}

func jsonEqual(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestPodsHaveUsersOfTheirOwn(t *testing.T) {
	live(t, func(r *rig) {
		r.want(own("a"), own("b"), manifest("host", "img:1"))
		a, b := usersOf(r, "a-n"), usersOf(r, "b-n")
		if a == b {
			r.Errorf("both pods have the users from %d on", a)
		}
		c, _ := r.Container("host-n/c")
		if u := c.Config.Linux.SecurityContext.NamespaceOptions.UsernsOptions; u.Mode != rt.NamespaceMode_NODE || len(u.Uids) > 0 || c.Config.Mounts[0].UidMappings != nil {
			r.Errorf("the pod with the machine's users has %v and %v", u, c.Config.Mounts[0])
		}
		r.stop()
		r.start()
		r.want(own("a"), own("b"), own("c"))
		r.Exit("a-n/c", 1)
		r.after(time.Minute)
		if again := usersOf(r, "a-n"); again != a {
			r.Errorf("another agent restarts it with the users from %d on, it had those from %d on", again, a)
		}
		if c := usersOf(r, "c-n"); c == a || c == b {
			r.Errorf("another agent gives the users from %d on away twice", c)
		}
	})
}

func TestUsersGoBackWithTheirPod(t *testing.T) {
	live(t, func(r *rig) {
		two := uint64(2 * checkpoint.IdsPerPod)
		pool := func() (checkpoint.IdRange, error) {
			return checkpoint.IdRange{First: checkpoint.IdsPerPod, Length: two}, nil
		}
		r.sync.shared.Disk.Root.Users.Pool = pool
		r.want(own("a"), own("b"))
		r.want(own("a"), own("b"), own("c"))
		r.expect("default/a-n/c", "default/b-n/c")
		if c := condition0(r.status("default/c-n")); !strings.Contains(c.Message, "all 2 ranges of user ids are taken") {
			r.Errorf("condition %+v", c)
		}
		free := usersOf(r, "a-n")
		r.want(manifest("other", "img:1"), own("b"), own("c"))
		r.after(time.Minute)
		if got := usersOf(r, "c-n"); got != free {
			r.Errorf("c has the users from %d on, want those of a, from %d on", got, free)
		}
	})
}

func TestOwnUsersTakeARuntimeThatCan(t *testing.T) {
	restartedWith(t, nil, []critest.Feature{critest.UserNamespaces}, func(r *rig) {
		r.want(own("web"))
		r.after(time.Minute)
		r.expect()
		const why = "Failed to create pod sandbox: can't set `spec.hostUsers: false`, runtime does not support user namespaces"
		if c := condition0(r.status("default/web-n")); c.Reason != "FailedCreatePodSandBox" || c.Message != why {
			r.Errorf("condition %+v", c)
		}
		if files, _ := filepath.Glob(filepath.Join(r.dir, "pods/*/userns")); len(files) > 0 || r.Count("RunPodSandbox") > 0 {
			r.Errorf("made %v, sandboxes %v", files, r.Sandboxes())
		}
	})
}

func TestNoUsersAreGivenWhileThoseTakenAreUnknown(t *testing.T) {
	for _, text := range []string{"", "{}", `{"uidMappings":[{"hostId":65536,"length":65536}],"gidMappings":[{"hostId":131072,"length":65536}]}`} {
		dir := t.TempDir()
		noErr(t, os.MkdirAll(filepath.Join(dir, "pods/old"), 0o750))
		noErr(t, os.WriteFile(filepath.Join(dir, "pods/old/userns"), []byte(text), 0o600))
		r, err := checkpoint.OpenRoot(dir)
		noErr(t, err)
		defer r.Close()
		if u, err := r.Users.Take("new"); err == nil || !strings.Contains(err.Error(), "pods/old/userns") {
			t.Errorf("%q: got %v, %v", text, u, err)
		}
	}
}

func TestIDsThatTheAdministratorGave(t *testing.T) {
	for _, row := range []struct {
		name, out string
		want      checkpoint.IdRange
		fails     string
	}{
		{"one range", "0: kubelet 65536 7208960\n", checkpoint.IdRange{First: 65536, Length: 7208960}, ""},
		{"none", "", checkpoint.IdRange{}, "not understood"},
		{"two", "0: kubelet 65536 65536\n1: kubelet 196608 65536\n", checkpoint.IdRange{}, "2 ranges"},
		{"ids of the machine", "0: kubelet 0 65536\n", checkpoint.IdRange{}, "must be whole ranges"},
		{"begins within a range", "0: kubelet 65537 65536\n", checkpoint.IdRange{}, "must be whole ranges"},
		{"ends within a range", "0: kubelet 65536 65537\n", checkpoint.IdRange{}, "must be whole ranges"},
		{"nothing in it", "0: kubelet 65536 0\n", checkpoint.IdRange{}, "must be whole ranges"},
		{"more than there are", "0: kubelet 65536 4294967296\n", checkpoint.IdRange{}, "must be whole ranges"},
		{"the last", "0: kubelet 4294901760 65536\n", checkpoint.IdRange{First: 4294901760, Length: 65536}, ""},
	} {
		got, err := checkpoint.ParseSubIDs(row.out)
		if got != row.want || (err == nil) != (row.fails == "") || err != nil && !strings.Contains(err.Error(), row.fails) {
			t.Errorf("%s: got %v, %v", row.name, got, err)
		}
	}
}
