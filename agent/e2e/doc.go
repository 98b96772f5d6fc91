// Package e2e drives the built monopod against real runtimes, as a user would:
// manifests go into a folder, and the tests look at what the runtime, the status
// files, the socket and the command line then show. `make e2e` runs them on
// containerds, `make e2e-crio` on a CRI-O; they need root and the build tag e2e. The
// package itself is empty.
package e2e
