package devicename

import (
	"strings"
	"testing"
)

func TestResourcesThatNameADevice(t *testing.T) {
	for _, row := range []struct {
		name string
		want Device
	}{
		{"podman.io/device=/dev/fuse", Device{Path: "/dev/fuse", In: "/dev/fuse", Permissions: "rwm"}},
		{"podman.io/device=/dev/ttyUSB0:/dev/modem", Device{Path: "/dev/ttyUSB0", In: "/dev/modem", Permissions: "rwm"}},
		{"podman.io/device=/dev/ttyUSB0:/dev/modem:rw", Device{Path: "/dev/ttyUSB0", In: "/dev/modem", Permissions: "rw"}},
		{"podman.io/device=/dev/ttyUSB0:r", Device{Path: "/dev/ttyUSB0", In: "/dev/ttyUSB0", Permissions: "r"}},
		{"nvidia.com/gpu=all", Device{CDI: "nvidia.com/gpu=all"}},
		{"example.com/a_b-c.d=0:1.x", Device{CDI: "example.com/a_b-c.d=0:1.x"}},
	} {
		if got, err := Parse(row.name); got != row.want || err != nil {
			t.Errorf("%s: %+v, %v", row.name, got, err)
		}
	}
}

func TestNamesOfNoDevice(t *testing.T) {
	const path, cdi, permissions = "must be podman.io/device=/dev/NAME", "must be the full name of a CDI device", "its permissions must be of the letters"
	for name, want := range map[string]string{
		"podman.io/device=":                     path,
		"podman.io/device=dev/fuse":             path,
		"podman.io/device=/":                    path,
		"podman.io/device=/dev/../etc":          path,
		"podman.io/device=/dev/a:/dev/b:/dev/c": path,
		"podman.io/device=/dev/a:/dev/b/:rw":    path,
		"podman.io/device=/dev/a:rw:/dev/b":     path,
		"podman.io/device=/dev/a:/dev/b:rwx":    permissions,
		"podman.io/device=/dev/a:":              permissions,
		"podman.io/device=/dev/a:rr":            permissions,
		"gpu=all":                               cdi,
		"nvidia.com/=all":                       cdi,
		"nvidia.com/gpu=":                       cdi,
		"nvidia.com/gpu=-a":                     cdi,
		"nvidia.com/0gpu=a":                     cdi,
		"1nvidia.com/gpu=a":                     cdi,
		"nvidia.com/gpu.=a":                     cdi,
		"nvidia.com/gpu=a b":                    cdi,
		"nvidia.com/gpu=a=b":                    cdi,
	} {
		if !Is(name) {
			t.Errorf("%s is the name of a resource", name)
		}
		if _, err := Parse(name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if Is("example.com/serial") {
		t.Error("a resource is a device")
	}
}

func TestPermissions(t *testing.T) {
	for text, good := range map[string]bool{"r": true, "rw": true, "wr": true, "rwm": true, "": false, "x": false, "rw ": false, "rr": false, "RW": false} {
		if err := CheckPermissions(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
