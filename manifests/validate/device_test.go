package validate_test

import (
	"testing"

	"monopod/manifests/documents"
)

func TestDevicesThatAreRequestedByName(t *testing.T) {
	const at = "spec.containers[0].resources."
	for _, row := range []struct{ resources, want string }{
		{"limits: {podman.io/device=/dev/fuse: 1}", ""},
		{"requests: {podman.io/device=/dev/fuse: 1}", ""},
		{"limits: {podman.io/device=/dev/ttyUSB0:/dev/modem:rw: 1}", ""},
		{"limits: {nvidia.com/gpu=all: 1}", ""},
		{"limits: {podman.io/device=fuse: 1}", at + `limits[podman.io/device=fuse]: Invalid value: "podman.io/device=fuse": must be podman.io/device=/dev/NAME`},
		{"limits: {podman.io/device=/dev/fuse:rx: 1}", at + `limits[podman.io/device=/dev/fuse:rx]: Invalid value: "podman.io/device=/dev/fuse:rx": its permissions must be of the letters r, w and m`},
		{"requests: {gpu=all: 1}", at + `requests[gpu=all]: Invalid value: "gpu=all": must be the full name of a CDI device, such as example.com/gpu=0`},
		{"limits: {nvidia.com/gpu=all: 1}, requests: {nvidia.com/gpu=all: 2}", at + `requests[nvidia.com/gpu=all]: Invalid value: "2": must be equal to nvidia.com/gpu=all limit of 1`},
		{"limits: {nvidia.com/gpu=all: 500m}", at + `limits[nvidia.com/gpu=all]: Invalid value: "500m": must be an integer`},
		{"limits: {example.com/serial: 1}, requests: {example.com/serial: 2}", at + `requests[example.com/serial]: Invalid value: "2": must be equal to example.com/serial limit of 1`},
	} {
		_, problems := documents.Decode("/m/x.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i, resources: {"+row.resources+"}}]}\n"), node1)
		checkProblems(t, problems, row.want)
	}
}

func TestAnnotationsThatNameCDIDevices(t *testing.T) {
	const at = "metadata.annotations[cdi.k8s.io/cams]: Invalid value: "
	for _, row := range []struct{ value, want string }{
		{"example.com/cam=0", ""},
		{"example.com/cam=0,example.com/cam=1", ""},
		{"example.com/cam", at + `"example.com/cam": must be the full name of a CDI device, such as example.com/gpu=0; several have commas between, without spaces`},
		{"example.com/cam=0, example.com/cam=1", at + `" example.com/cam=1": must be the full name of a CDI device`},
		{"", at + `"": must be the full name of a CDI device`},
	} {
		_, problems := documents.Decode("/m/x.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {cdi.k8s.io/cams: '"+row.value+"'}}\nspec: {containers: [{name: c, image: i}]}\n"), node1)
		checkProblems(t, problems, row.want)
	}
}
