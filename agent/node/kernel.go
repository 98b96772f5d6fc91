package node

import "fmt"

// Kernel is a kernel version such as 4.15.
type Kernel struct{ Major, Minor int }

// parseKernel reads the beginning of a release such as 6.1.0-13-amd64.
func parseKernel(release string) Kernel {
	var k Kernel
	fmt.Sscanf(release, "%d.%d", &k.Major, &k.Minor)
	return k
}

// Before reports whether k is older than l.
func (k Kernel) Before(l Kernel) bool {
	return k.Major < l.Major || k.Major == l.Major && k.Minor < l.Minor
}
