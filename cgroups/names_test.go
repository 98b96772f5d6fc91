package cgroups

import (
	"path"
	"testing"
)

func TestNames(t *testing.T) {
	const uid, dashed = "0123456789abcdef0123456789abcdef", "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
	for _, c := range []struct {
		name  string
		names Names
		class Class
		uid   string
		want  string
	}{
		{"guaranteed", Names{Driver: Cgroupfs}, Guaranteed, uid, "/kubepods/pod" + uid},
		{"burstable", Names{Driver: Cgroupfs, Root: "/"}, Burstable, uid, "/kubepods/burstable/pod" + uid},
		{"best effort", Names{Driver: Cgroupfs}, BestEffort, dashed, "/kubepods/besteffort/pod" + dashed},
		{"under a root", Names{Driver: Cgroupfs, Root: "/a/b-c"}, Burstable, uid, "/a/b-c/kubepods/burstable/pod" + uid},
		{"slice, guaranteed", Names{Driver: Systemd}, Guaranteed, uid, "/kubepods.slice/kubepods-pod" + uid + ".slice"},
		{"slice, burstable", Names{Driver: Systemd, Root: "/"}, Burstable, uid, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uid + ".slice"},
		{"slice, uid with dashes", Names{Driver: Systemd}, BestEffort, dashed,
			"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1b4e28ba_2fa1_11d2_883f_0016d3cca427.slice"},
		{"slice under a root", Names{Driver: Systemd, Root: "/a/b"}, Guaranteed, uid, "/a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-pod" + uid + ".slice"},
		{"none", Names{Root: "/a"}, Burstable, uid, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.names.Pod(c.class, c.uid)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestUIDOfAName(t *testing.T) {
	for _, c := range []struct {
		driver     Driver
		base, want string
	}{
		{Cgroupfs, "pod12ab", "12ab"},
		{Cgroupfs, "pod1b4e-2f", "1b4e-2f"},
		{Cgroupfs, "burstable", ""},
		{Cgroupfs, "pod", ""},
		{Cgroupfs, "pod..", ""},
		{Systemd, "kubepods-burstable-pod1b4e_2f.slice", "1b4e-2f"},
		{Systemd, "kubepods-pod12ab.slice", "12ab"},
		{Systemd, "kubepods-burstable.slice", ""},
		{Systemd, "kubepods-pod12ab", ""},
	} {
		if got := (Names{Driver: c.driver}).uid(c.base); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.driver, c.base, got, c.want)
		}
	}
}

// Whatever uid a pod may have, its cgroup is called as no other one's, and tells it.
func TestEachUIDHasACgroupOfItsOwn(t *testing.T) {
	for _, d := range []Driver{Cgroupfs, Systemd} {
		names, of := Names{Driver: d}, map[string]string{}
		for _, uid := range []string{"a", "A", "-", "--", "-rf", "a-", "a--b", "a-b", "ab", "slice", "1b4e28ba-2fa1-11d2-883f-0016d3cca427"} {
			if err := checkUID(uid); err != nil {
				t.Error(err)
			}
			for _, c := range classes {
				name := names.Pod(c, uid)
				if other, taken := of[name]; taken {
					t.Errorf("%s: %q and %q are both called %s", d, uid, other, name)
				}
				if of[name] = uid; names.uid(path.Base(name)) != uid {
					t.Errorf("%s: %s is taken for that of %q", d, name, names.uid(path.Base(name)))
				}
			}
		}
	}
}
