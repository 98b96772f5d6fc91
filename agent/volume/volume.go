// Package volume makes the directories of a pod and what its containers mount
// from there, and removes them without ever deleting through a mount or a
// symbolic link.
package volume

// Mount is a volume that is ready to be mounted into containers.
type Mount struct {
	// HostPath is the absolute path of the volume on the machine.
	HostPath string
	// ReadOnly volumes are mounted read-only whatever the container says.
	ReadOnly bool
	// Managed volumes are the agent's own, so it may relabel them for SELinux.
	Managed bool
}
