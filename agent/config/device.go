package config

import (
	"errors"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"monopod/manifests/devicename"
)

// device checks a resource that stands for devices. Its errors quote nothing.
func device(resource string, d Device) error {
	switch {
	case !isDeviceResource(resource):
		return errors.New("no name of a resource for devices, such as example.com/serial")
	case len(d.Paths)+len(d.CDI) == 0:
		return errors.New("names no device: give paths such as /dev/ttyUSB*, or names in cdi")
	case d.Permissions != "" && devicename.CheckPermissions(d.Permissions) != nil:
		return errors.New("permissions " + devicename.CheckPermissions(d.Permissions).Error())
	case d.Count < 0:
		return errors.New("count must not be negative: it is how many containers may have a device at a time, 1 unless given")
	case d.Count > 0 && d.Shared:
		return errors.New("count contradicts shared: true, with which any number of containers may have a device: give one of them")
	}
	for _, p := range d.Paths {
		if _, err := filepath.Match(p, ""); err != nil || !filepath.IsAbs(p) || filepath.Clean(p) != p {
			return errors.New("paths must be absolute paths, or patterns of such: /dev/ttyUSB*")
		}
	}
	for _, name := range d.CDI {
		if err := devicename.CheckCDI(name); err != nil {
			return errors.New("a name in cdi " + err.Error())
		}
	}
	return nil
}

// isDeviceResource reports whether a name is that of a resource which Kubernetes leaves to others.
func isDeviceResource(name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	return qualified && len(validation.IsQualifiedName(name)) == 0 && domain != "kubernetes.io" &&
		!strings.HasSuffix(domain, ".kubernetes.io") && !strings.HasPrefix(name, v1.DefaultResourceRequestsPrefix)
}
