package podspec

import (
	"reflect"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestImageUser(t *testing.T) {
	for _, c := range []struct {
		name string
		in   *rt.Image
		uid  int64 // -1: nil
		user string
	}{
		{"no image", nil, 0, ""},
		{"nothing said", &rt.Image{}, 0, ""},
		{"number", &rt.Image{Uid: &rt.Int64Value{Value: 1000}, Username: "ignored"}, 1000, ""},
		{"name", &rt.Image{Username: "nobody"}, -1, "nobody"},
	} {
		uid, user := ImageUser(c.in)
		got := int64(-1)
		if uid != nil {
			got = *uid
		}
		if got != c.uid || user != c.user {
			t.Errorf("%s: got %d %q", c.name, got, user)
		}
	}
}

func TestRunAsNonRoot(t *testing.T) {
	const where = ` (pod: "web-node1_default(u1)", container: main)`
	for _, c := range []struct {
		name string
		pod  v1.PodSecurityContext
		own  v1.SecurityContext
		uid  *int64
		user string
		want string
	}{
		{"not asked for", v1.PodSecurityContext{}, v1.SecurityContext{}, new(int64(0)), "", ""},
		{"container takes it back", v1.PodSecurityContext{RunAsNonRoot: new(true)}, v1.SecurityContext{RunAsNonRoot: new(false)}, new(int64(0)), "", ""},
		{"runAsUser 0", v1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(0))}, v1.SecurityContext{}, new(int64(5)), "", "container's runAsUser breaks non-root policy" + where},
		{"runAsUser over a root image", v1.PodSecurityContext{RunAsNonRoot: new(true)}, v1.SecurityContext{RunAsUser: new(int64(7))}, new(int64(0)), "", ""},
		{"user by name", v1.PodSecurityContext{}, v1.SecurityContext{RunAsNonRoot: new(true)}, nil, "www", "container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root" + where},
		{"root image", v1.PodSecurityContext{}, v1.SecurityContext{RunAsNonRoot: new(true)}, new(int64(0)), "", "container has runAsNonRoot and image will run as root" + where},
		{"unknown image", v1.PodSecurityContext{}, v1.SecurityContext{RunAsNonRoot: new(true)}, nil, "", "container has runAsNonRoot and image will run as root" + where},
		{"numeric image user", v1.PodSecurityContext{}, v1.SecurityContext{RunAsNonRoot: new(true)}, new(int64(5)), "", ""},
		{"the largest", v1.PodSecurityContext{}, v1.SecurityContext{RunAsNonRoot: new(true)}, new(int64(1<<31 - 1)), "", ""},
		{"below zero", v1.PodSecurityContext{}, v1.SecurityContext{RunAsNonRoot: new(true)}, new(int64(-1)), "",
			"container has runAsNonRoot and image has an invalid user id (-1). (Must be 1-(2147483647)):" + where},
		{"too large", v1.PodSecurityContext{}, v1.SecurityContext{RunAsNonRoot: new(true)}, new(int64(1 << 31)), "",
			"container has runAsNonRoot and image has an invalid user id (2147483648). (Must be 1-(2147483647)):" + where},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := specPod(func(p *v1.Pod) { p.Spec.SecurityContext, p.Spec.Containers[0].SecurityContext = &c.pod, &c.own })
			_, err := ContainerConfig(p, &p.Spec.Containers[0], Input{ImageUID: c.uid, ImageUsername: c.user}, specNode())
			if errText(err) != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestContainerSecurity(t *testing.T) {
	runtimeDefault := &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}
	for _, c := range []struct {
		name  string
		pod   v1.PodSecurityContext
		own   v1.SecurityContext
		check func(*rt.LinuxContainerSecurityContext) bool
	}{
		{"nothing asked: image user, unconfined, masked", v1.PodSecurityContext{}, v1.SecurityContext{}, func(s *rt.LinuxContainerSecurityContext) bool {
			return s.RunAsUser == nil && s.RunAsUsername == "www" && s.Seccomp.ProfileType == rt.SecurityProfile_Unconfined && !s.NoNewPrivs &&
				s.Capabilities == nil && slices.Contains(s.MaskedPaths, "/proc/kcore") && slices.Contains(s.MaskedPaths, "/extra") && len(s.ReadonlyPaths) == 5 && s.Apparmor == nil
		}},
		{"container over pod", v1.PodSecurityContext{RunAsUser: new(int64(1)), RunAsGroup: new(int64(2)), SELinuxOptions: &v1.SELinuxOptions{Type: "t", Level: "s0"}},
			v1.SecurityContext{RunAsUser: new(int64(3)), SELinuxOptions: &v1.SELinuxOptions{Type: "u"}}, func(s *rt.LinuxContainerSecurityContext) bool {
				return s.RunAsUser.Value == 3 && s.RunAsGroup.Value == 2 && s.RunAsUsername == "" && s.SelinuxOptions.Type == "u" && s.SelinuxOptions.Level == ""
			}},
		{"groups", v1.PodSecurityContext{FSGroup: new(int64(9)), SupplementalGroups: []int64{5, 6}, SupplementalGroupsPolicy: new(v1.SupplementalGroupsPolicyStrict)}, v1.SecurityContext{},
			func(s *rt.LinuxContainerSecurityContext) bool {
				return slices.Equal(s.SupplementalGroups, []int64{9, 5, 6}) && s.SupplementalGroupsPolicy == rt.SupplementalGroupsPolicy_Strict
			}},
		{"seccomp of the pod", v1.PodSecurityContext{SeccompProfile: runtimeDefault}, v1.SecurityContext{}, func(s *rt.LinuxContainerSecurityContext) bool {
			return s.Seccomp.ProfileType == rt.SecurityProfile_RuntimeDefault
		}},
		{"own seccomp file", v1.PodSecurityContext{SeccompProfile: runtimeDefault}, v1.SecurityContext{SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: new("a/b.json")}},
			func(s *rt.LinuxContainerSecurityContext) bool {
				return s.Seccomp.ProfileType == rt.SecurityProfile_Localhost && s.Seccomp.LocalhostRef == "/var/lib/monopod/seccomp/a/b.json"
			}},
		{"unmasked", v1.PodSecurityContext{}, v1.SecurityContext{ProcMount: new(v1.UnmaskedProcMount)}, func(s *rt.LinuxContainerSecurityContext) bool {
			return len(s.MaskedPaths) == 0 && len(s.ReadonlyPaths) == 0
		}},
		{"privileges", v1.PodSecurityContext{}, v1.SecurityContext{Privileged: new(true), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
			Capabilities: &v1.Capabilities{Add: []v1.Capability{"NET_ADMIN"}, Drop: []v1.Capability{"ALL"}}}, func(s *rt.LinuxContainerSecurityContext) bool {
			return s.Privileged && s.ReadonlyRootfs && s.NoNewPrivs && reflect.DeepEqual(s.Capabilities.AddCapabilities, []string{"NET_ADMIN"}) && reflect.DeepEqual(s.Capabilities.DropCapabilities, []string{"ALL"})
		}},
		{"apparmor", v1.PodSecurityContext{AppArmorProfile: &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeUnconfined}}, v1.SecurityContext{AppArmorProfile: &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("p")}},
			func(s *rt.LinuxContainerSecurityContext) bool {
				//lint:ignore SA1019 older runtimes read only this field, and the kubelet sends both
				return s.ApparmorProfile == "localhost/p" && s.Apparmor.LocalhostRef == "p" && s.Apparmor.ProfileType == rt.SecurityProfile_Localhost
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := specNode()
			n.MaskedPaths = []string{"/extra"}
			p := specPod(func(p *v1.Pod) { p.Spec.SecurityContext, p.Spec.Containers[0].SecurityContext = &c.pod, &c.own })
			got, err := containerSecurity(p, &p.Spec.Containers[0], Input{ImageUsername: "www"}, n)
			if err != nil || !c.check(got) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestAppArmorAnnotation(t *testing.T) {
	for in, want := range map[string]string{"": "", "runtime/default": "runtime/default", "unconfined": "unconfined", "localhost/x": "localhost/x", "odd": ""} {
		p := specPod(func(p *v1.Pod) { p.Annotations = map[string]string{annAppArmorContainer + "main": in} })
		if _, got := AppArmor(p, &p.Spec.Containers[0]); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

func TestSandboxSecurity(t *testing.T) {
	p := specPod(func(p *v1.Pod) {
		p.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: new(int64(1)), SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeUnconfined}}
		p.Spec.InitContainers = []v1.Container{{Name: "i", SecurityContext: &v1.SecurityContext{Privileged: new(true)}}}
	})
	if s := sandboxSecurity(p); !s.Privileged || s.RunAsUser.Value != 1 || s.Seccomp.ProfileType != rt.SecurityProfile_RuntimeDefault {
		t.Errorf("got %v", s)
	}
}

func TestSeccompProfiles(t *testing.T) {
	for _, row := range []struct {
		name   string
		in     *v1.SeccompProfile
		byNode bool
		want   string
	}{
		{"none", nil, false, "Unconfined "},
		{"none, and the node's default", nil, true, "RuntimeDefault "},
		{"unconfined", &v1.SeccompProfile{Type: v1.SeccompProfileTypeUnconfined}, true, "Unconfined "},
		{"the runtime's", &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}, false, "RuntimeDefault "},
		{"a file", &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: new("a.json")}, false, "Localhost /var/lib/monopod/seccomp/a.json"},
		{"a file without a name", &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: new("")}, false, "localhostProfile must be set if seccompProfile type is Localhost"},
		{"no file", &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost}, false, "localhostProfile must be set if seccompProfile type is Localhost"},
		{"another type", &v1.SeccompProfile{Type: "Odd"}, false, `unknown seccompProfile type "Odd"`},
	} {
		n := specNode()
		n.SeccompDefault = row.byNode
		s, err := seccompProfile(row.in, n)
		got := errText(err)
		if err == nil {
			got = s.ProfileType.String() + " " + s.LocalhostRef
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
