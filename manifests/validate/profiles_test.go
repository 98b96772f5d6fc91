package validate_test

import (
	"testing"

	"monopod/manifests/documents"
)

// TestValidateProfiles: each row is what the annotations and the one container
// of a pod say of profiles, and of linux.
func TestValidateProfiles(t *testing.T) {
	const (
		apparmor = "container.apparmor.security.beta.kubernetes.io/c"
		seccomp  = "container.seccomp.security.alpha.kubernetes.io/c"
		whole    = "seccomp.security.alpha.kubernetes.io/pod"
		at       = "spec.containers[0].securityContext."
		inert    = "has no effect since Kubernetes 1.27"
	)
	tests := []struct{ name, annotations, container, spec, want string }{
		{"apparmor by annotation", apparmor + ": localhost/x", "", "", ""},
		{"apparmor both ways", apparmor + ": localhost/x", "securityContext: {appArmorProfile: {type: Localhost, localhostProfile: x}}", "", ""},
		{"apparmor of an unknown form", apparmor + ": docker/default", "", "", "metadata.annotations[" + apparmor + `]: Invalid value: "docker/default": must be runtime/default, unconfined or localhost/<profile>`},
		{"apparmor of nothing", apparmor + ": ''", "", "", ""},
		{"apparmor of two minds", apparmor + ": unconfined", "securityContext: {appArmorProfile: {type: RuntimeDefault}}", "", at + "appArmorProfile.type: Forbidden: apparmor type in annotation and field must match"},
		{"apparmor by two files", apparmor + ": localhost/x", "securityContext: {appArmorProfile: {type: Localhost, localhostProfile: z}}", "", at + "appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation and field must match"},
		{"apparmor of a container that is not there", apparmor + "x: unconfined", "", "", "metadata.annotations[" + apparmor + `x]: Invalid value: "cx": there is no container "cx"`},

		{"seccomp by annotation", seccomp + ": runtime/default, " + whole + ": unconfined", "", "", "~metadata.annotations[" + seccomp + "]: " + inert + "|~metadata.annotations[" + whole + "]: " + inert},
		{"seccomp both ways", seccomp + ": docker/default, " + whole + ": localhost/a/b", "securityContext: {seccompProfile: {type: RuntimeDefault}}", "securityContext: {seccompProfile: {type: Localhost, localhostProfile: a/b}}", ""},
		{"seccomp of an unknown form", whole + ": best", "", "", "metadata.annotations[" + whole + `]: Invalid value: "best": must be a valid seccomp profile`},
		{"seccomp that climbs", seccomp + ": localhost/../x", "", "", "metadata.annotations[" + seccomp + `]: Invalid value: "../x": must not contain '..'|~`},
		{"seccomp of two minds", whole + ": unconfined", "", "securityContext: {seccompProfile: {type: RuntimeDefault}}", "spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match"},
		{"seccomp by two files", seccomp + ": localhost/a", "securityContext: {seccompProfile: {type: Localhost, localhostProfile: b}}", "", at + "seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation and field must match"},

		{"windows on linux", "", "securityContext: {windowsOptions: {}}", "os: {name: linux}, securityContext: {windowsOptions: {}}", "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod|" + at + "windowsOptions: Forbidden"},
		{"windows on whatever", "", "securityContext: {windowsOptions: {}}", "securityContext: {windowsOptions: {}}", ""},
		{"selinux", "", "", "securityContext: {seLinuxChangePolicy: Always}", `spec.securityContext.seLinuxChangePolicy: Unsupported value: "Always"`},
		{"a signal", "", "lifecycle: {stopSignal: SIGRTMIN+15}", "os: {name: linux}", ""},
		{"another signal", "", "lifecycle: {stopSignal: SIGRTMAX-14}", "os: {name: linux}", ""},
		{"no signal", "", "lifecycle: {stopSignal: SIGRTMAX-15}", "os: {name: linux}", `spec.containers[0].lifecycle.stopSignal: Invalid value: "SIGRTMAX-15": must be a signal of linux`},
		{"a name of no resource", "", "resources: {limits: {requests.example.com/x: 1}}", "", "spec.containers[0].resources.limits[requests.example.com/x]: Invalid value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := "{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {" + tt.annotations + "}}, spec: {" + tt.spec +
				ifAny(tt.spec, ", ") + "containers: [{name: c, image: i" + ifAny(tt.container, ", ") + tt.container + "}]}}"
			_, problems := documents.Decode("/m/x.yaml", []byte(file), node1)
			checkProblems(t, problems, tt.want)
		})
	}
}

func ifAny(s, then string) string {
	if s == "" {
		return ""
	}
	return then
}
