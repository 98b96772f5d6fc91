package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// legacyProfiles checks the annotations that preceded the profile fields: their values, and that
// they match the fields if both are set.
func (c *checker) legacyProfiles() {
	p := field.NewPath("metadata", "annotations")
	for _, key := range slices.Sorted(maps.Keys(c.pod.Annotations)) {
		value := c.pod.Annotations[key]
		if name, ok := strings.CutPrefix(key, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix); ok {
			c.legacyAppArmor(p.Key(key), name, value)
		}
		if name, ok := strings.CutPrefix(key, v1.SeccompContainerAnnotationKeyPrefix); ok && c.readContainers("name") {
			var profile *v1.SeccompProfile
			at, ct := c.containerAt(name)
			if ct != nil && ct.SecurityContext != nil {
				profile = ct.SecurityContext.SeccompProfile
			}
			c.legacySeccomp(p.Key(key), value, at, profile)
		}
	}
	if value, ok := c.pod.Annotations[v1.SeccompPodAnnotationKey]; ok {
		c.legacySeccomp(p.Key(v1.SeccompPodAnnotationKey), value, field.NewPath("spec"), c.spec.SecurityContext.SeccompProfile)
	}
}

// legacyProfile converts the value of an annotation to the terms of the fields.
func legacyProfile(value string) (kind, file string, ok bool) {
	switch value {
	case v1.SeccompProfileRuntimeDefault, v1.DeprecatedSeccompProfileDockerDefault:
		return string(v1.SeccompProfileTypeRuntimeDefault), "", true
	case v1.SeccompProfileNameUnconfined:
		return string(v1.SeccompProfileTypeUnconfined), "", true
	}
	file, ok = strings.CutPrefix(value, v1.SeccompLocalhostProfileNamePrefix)
	return string(v1.SeccompProfileTypeLocalhost), file, ok
}

// agree compares an annotation with the field that replaced it.
func (c *checker) agree(p *field.Path, what, kind, file, fieldKind string, fieldFile *string) {
	c.forbid(kind != fieldKind, p.Child("type"), what+" type in annotation and field must match")
	c.forbid(kind == fieldKind && file != deref(fieldFile), p.Child("localhostProfile"), what+" profile in annotation and field must match")
}

// legacySeccomp checks an annotation that a kubelet still validates but no longer uses. at is the
// parent of the security context.
func (c *checker) legacySeccomp(p *field.Path, value string, at *field.Path, profile *v1.SeccompProfile) {
	kind, file, ok := legacyProfile(value)
	if !ok {
		c.add(field.Invalid(p, value, "must be a valid seccomp profile"))
		return
	}
	c.localPath(p, file)
	if profile == nil && !c.read(at.Child("securityContext", "seccompProfile")) {
		return
	}
	if profile == nil {
		c.warn(p, "has no effect since Kubernetes 1.27: write securityContext.seccompProfile")
		return
	}
	c.agree(at.Child("securityContext", "seccompProfile"), "seccomp", kind, file, string(profile.Type), profile.LocalhostProfile)
}

func (c *checker) legacyAppArmor(p *field.Path, name, value string) {
	at, ct := c.containerAt(name)
	if ct == nil && !c.readContainers("name") {
		return
	}
	if ct == nil {
		c.addQuoting(field.Invalid(p, name, fmt.Sprintf("there is no container %q", name)))
		return
	}
	kind, file, ok := legacyProfile(value)
	if value != "" && (!ok || value == v1.DeprecatedSeccompProfileDockerDefault) {
		c.add(field.Invalid(p, value, "must be runtime/default, unconfined or localhost/<profile>"))
		return
	}
	if sc := ct.SecurityContext; value != "" && sc != nil && sc.AppArmorProfile != nil {
		c.agree(at.Child("securityContext", "appArmorProfile"), "apparmor", kind, file, string(sc.AppArmorProfile.Type), sc.AppArmorProfile.LocalhostProfile)
	}
}

// containerAt returns a regular or init container and its path; nil if there is none.
func (c *checker) containerAt(name string) (*field.Path, *v1.Container) {
	for _, list := range []struct {
		name string
		all  []v1.Container
	}{{"initContainers", c.spec.InitContainers}, {"containers", c.spec.Containers}} {
		for i := range list.all {
			if list.all[i].Name == name {
				return field.NewPath("spec", list.name).Index(i), &list.all[i]
			}
		}
	}
	return nil, nil
}

// stopSignal checks that a signal is one of Linux.
func (c *checker) stopSignal(p *field.Path, s v1.Signal) {
	name := string(s)
	known := slices.Contains(strings.Fields(`SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT
		SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU
		SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIGRTMIN SIGRTMAX`), name)
	for n := 1; n <= 15; n++ {
		known = known || name == fmt.Sprintf("SIGRTMIN+%d", n) || n < 15 && name == fmt.Sprintf("SIGRTMAX-%d", n)
	}
	if !known {
		c.add(field.Invalid(p, name, "must be a signal of linux, such as SIGTERM, SIGUSR1 or SIGRTMIN+3"))
	}
}
