package managed

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// Version is that of a containerd.
type Version struct{ Major, Minor, Patch int }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// atLeast reports whether v is that minor version, or a later one.
func (v Version) atLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

var versionWord = regexp.MustCompile(`(?:^|\s)v?(\d+)\.(\d+)\.(\d+)`)

// ParseVersion reads the output of `containerd --version`.
func ParseVersion(text string) (v Version, err error) {
	m := versionWord.FindStringSubmatch(text)
	if m == nil {
		return v, fmt.Errorf("containerd does not say its version: %q", text)
	}
	for k, n := range []*int{&v.Major, &v.Minor, &v.Patch} {
		if *n, err = strconv.Atoi(m[k+1]); err != nil {
			return v, fmt.Errorf("version of containerd: %w", err)
		}
	}
	return v, nil
}

func versionOf(binary string) (Version, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return Version{}, fmt.Errorf("%s --version: %w", binary, err)
	}
	return ParseVersion(string(out))
}
