// Package devicename reads the names of devices: of paths, and of the Container Device Interface (CDI).
package devicename

import (
	"errors"
	"path"
	"strings"
)

// Podman is what the name of a resource starts with that requests a device by its path, as in
// podman kube play: podman.io/device=/dev/fuse. As --device of podman, the path on the machine may
// be followed by the path in the container, and by permissions.
const Podman = "podman.io/device="

// Device is a device that the name of a resource requests by itself, without a setting.
type Device struct {
	CDI string // its full CDI name; "": it has a path

	Path        string // on the machine
	In          string // the path in the container
	Permissions string
}

// String returns the device as texts name it.
func (d Device) String() string {
	if d.CDI != "" {
		return d.CDI
	}
	return d.Path
}

// Is reports whether the name of a resource is that of a device. No resource of Kubernetes has such
// a name.
func Is(resource string) bool { return strings.Contains(resource, "=") }

// Parse returns the device that the name of a resource requests. Errors follow the name, and quote
// none.
func Parse(resource string) (Device, error) {
	if text, ok := strings.CutPrefix(resource, Podman); ok {
		return parsePath(text)
	}
	return Device{CDI: resource}, CheckCDI(resource)
}

// all is what podman permits a container without permissions of the device.
const all = "rwm"

// errPath is the error of a device that is named by its path.
var errPath = errors.New("must be " + Podman + "/dev/NAME, and may go on with :/PATH/IN/THE/CONTAINER and :PERMISSIONS")

func parsePath(text string) (Device, error) {
	parts := strings.Split(text, ":")
	d := Device{Path: parts[0], In: parts[0], Permissions: all}
	rest := parts[1:]
	if n := len(rest); n > 0 && CheckPermissions(rest[n-1]) == nil {
		d.Permissions, rest = rest[n-1], rest[:n-1]
	}
	if len(rest) > 0 && strings.HasPrefix(rest[0], "/") {
		d.In, rest = rest[0], rest[1:]
	}
	switch {
	case len(rest) == 1 && !strings.HasPrefix(rest[0], "/"):
		return Device{}, errors.New("its permissions " + errPermissions.Error())
	case len(rest) > 0 || !isPath(d.Path) || !isPath(d.In):
		return Device{}, errPath
	}
	return d, nil
}

// isPath reports whether a text is the path of something: absolute, and without detours.
func isPath(text string) bool { return path.IsAbs(text) && path.Clean(text) == text && text != "/" }

var errPermissions = errors.New("must be of the letters r, w and m (to make it), each once, such as rw")

// CheckPermissions returns an error if a text is not what a container may do with a device. The
// error follows a name.
func CheckPermissions(text string) error {
	for k := range len(text) {
		if !strings.Contains(all, text[k:k+1]) || strings.Contains(text[:k], text[k:k+1]) {
			return errPermissions
		}
	}
	if text == "" {
		return errPermissions
	}
	return nil
}

var errCDI = errors.New("must be the full name of a CDI device, such as example.com/gpu=0")

// CheckCDI returns an error if a text is not the full name of a CDI device: vendor/class=name. The
// rules are those of the specification's section on names.
func CheckCDI(text string) error {
	kind, name, _ := strings.Cut(text, "=")
	vendor, class, _ := strings.Cut(kind, "/")
	if !isPart(vendor, "_-.", isLetter) || !isPart(class, "_-.", isLetter) || !isPart(name, "_-.:", isAlphanumeric) {
		return errCDI
	}
	return nil
}

// isPart reports whether a part of a name has only letters, digits and, between them, some other
// characters.
func isPart(part, between string, isFirst func(c byte) bool) bool {
	if part == "" || !isFirst(part[0]) || !isAlphanumeric(part[len(part)-1]) {
		return false
	}
	for k := range len(part) {
		if !isAlphanumeric(part[k]) && !strings.Contains(between, part[k:k+1]) {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool       { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isAlphanumeric(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' }
