// Package runtimewords tells from the words of a runtime why it does not start a
// container or a command, where it has no code for that.
package runtimewords

import (
	"regexp"
	"sync"
)

// Cause is what stands against a start until somebody changes the manifest, the image or
// the machine.
type Cause int

const (
	Unknown       Cause = iota // anything else, which may pass
	NotFound                   // the command is not there
	NotExecutable              // the command is there, and cannot be executed
	MemoryTooLow               // the memory limit is less than the runtime takes
	NoUser                     // the image has no user or group of that name
	NoImage                    // the registry answered, and has no such image for this user
	ShortName                  // the image's name has no registry, and the runtime does not choose one
)

// ExitCode is what a shell ends with when it cannot run a command, and docker likewise; 0
// for causes that are not about the command.
func (c Cause) ExitCode() int {
	switch c {
	case NotFound:
		return 127
	case NotExecutable:
		return 126
	}
	return 0
}

// Call is what the runtime was asked for.
type Call int

const (
	Create Call = iota // a sandbox or container, of which more may be missing than the command
	Exec               // a command in a container that runs
	Image              // to look for an image, or to pull it
)

// runcExec is how runc starts what it says of the command: 1.1 and later, within the init
// process, and 1.0 ("caused: ", before that `caused "`). What it says of hooks, devices
// and mounts starts otherwise. Loggers may have escaped the quotes.
const runcExec = `(?:unable to start container process|during container init|starting container process caused)(?: \\*"|: )exec: \\*"[^"]*": `

// crunExec is what crun since 1.21 says of a command that is there.
const crunExec = "the path `[^`]*` (?:exists but it is not executable|is not a regular file)"

// table has the words, more certain ones first. Words of Exec alone say nothing certain of
// a container that is created: that is also said of volumes, devices and programs of the
// machine. testdata has what runtimes said; rows that nothing there needs name their source.
var table = []struct {
	call  Call
	cause Cause
	words string // a regular expression
}{
	// runc: libcontainer/standard_init_linux.go, exec.LookPath of Go's os/exec. CRI-O has
	// it when it creates a container.
	{Create, NotFound, runcExec + `(?:executable file not found in \$PATH|stat [^:]*: no such file or directory)`},
	{Create, NotExecutable, runcExec + `(?:stat [^:]*: )?(?:permission denied|is a directory|not a directory)`},
	// crun: src/libcrun/container.c, container_init_setup, and utils.c, find_executable.
	{Create, NotFound, "executable file `[^`]*` not found"},
	{Create, NotExecutable, `(?i)open executable: (?:permission denied|operation not permitted)`},
	{Create, NotExecutable, crunExec},
	// CRI-O: internal/config/cgmgr/cgmgr_linux.go, VerifyMemoryIsEnough, for containers and pods.
	{Create, MemoryTooLow, `set memory limit \d+ too low; should be at ?least`},
	// moby/sys/user, GetExecUser, by which CRI-O looks users up.
	{Create, NoUser, `unable to find (?:user|group) .*: no matching entries in (?:passwd|group) file`},
	// containerd: pkg/oci/spec_opts.go, ErrNoUsersFound and ErrNoGroupsFound.
	{Create, NoUser, `create containerd container: (?:.*: )?no (?:users|groups) found`},

	// runc, also of a path; crun.
	{Exec, NotFound, `(?i)executable file .*not found|no such file or directory`},
	{Exec, NotExecutable, `(?i)permission denied|exec format error|is a directory|open executable: operation not permitted`},
	{Exec, NotExecutable, crunExec},

	// CRI-O 1.34: internal/storage/image.go, CandidatesForPotentiallyShortImageName;
	// containers/image: pkg/shortnames.
	{Image, ShortName, `short name mode is enforcing|short-name .* did not resolve to an alias`},
	// containerd: core/remotes/docker, from the registry's answer (errors of the OCI
	// distribution specification, section "Error codes").
	{Image, NoImage, `(?i): not found|manifest unknown|name unknown|repository .*does not exist|pull access denied|insufficient_scope|unauthorized|denied: requested access`},
	// CRI-O, by containers/image: docker/errors.go leaves the code of an error away if the
	// text is the code's own (docker/distribution: registry/api/errcode and v2).
	{Image, NoImage, `: (?:requested access to the resource is denied|repository name not known to registry|authentication required|access to the requested resource is not authorized)`},
}

// words are the table's, compiled when they are needed first: most agents never do.
var words = sync.OnceValue(func() (all []*regexp.Regexp) {
	for _, row := range table {
		all = append(all, regexp.MustCompile(row.words))
	}
	return all
})

// Of returns what the words of a failed call mean.
func Of(call Call, text string) Cause {
	for k, row := range table {
		if row.call == call && words()[k].MatchString(text) {
			return row.cause
		}
	}
	return Unknown
}
