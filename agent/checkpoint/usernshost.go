package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"strings"
	"time"
)

// subIDs returns the ids that pods may have: those of the user "kubelet" in /etc/subuid and
// /etc/subgid, as in the kubelet, or all if it has none.
func subIDs() (IdRange, error) {
	if _, err := user.Lookup("kubelet"); err != nil {
		return allIDs(), nil
	}
	tool, err := exec.LookPath("getsubids")
	if errors.Is(err, exec.ErrNotFound) {
		return allIDs(), nil
	}
	if err != nil {
		return IdRange{}, err
	}
	users, err := askSubIDs(tool, "kubelet")
	if err != nil {
		return IdRange{}, err
	}
	groups, err := askSubIDs(tool, "-g", "kubelet")
	if err != nil {
		return IdRange{}, err
	}
	if users != groups {
		return IdRange{}, fmt.Errorf("the user kubelet has the user ids %v and the group ids %v, which must be the same", users, groups)
	}
	return users, nil
}

func askSubIDs(tool string, args ...string) (IdRange, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, tool, args...).Output()
	if err != nil {
		return IdRange{}, fmt.Errorf("%s %s: %w", tool, strings.Join(args, " "), err)
	}
	return ParseSubIDs(string(out))
}

// ParseSubIDs reads the one line "0: kubelet 65536 7208960" of getsubids.
func ParseSubIDs(out string) (IdRange, error) {
	var index int
	var name string
	var ids IdRange
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if n, err := fmt.Sscanf(lines[0], "%d: %s %d %d", &index, &name, &ids.First, &ids.Length); n != 4 {
		return IdRange{}, fmt.Errorf("subordinate ids of the user kubelet: %q is not understood: %w", lines[0], err)
	}
	switch {
	case len(lines) > 1:
		return IdRange{}, fmt.Errorf("the user kubelet has %d ranges of subordinate ids, which must be one", len(lines))
	case ids.First < IdsPerPod || ids.First%IdsPerPod != 0 || ids.Length < IdsPerPod || ids.Length%IdsPerPod != 0 || ids.First+ids.Length > 1<<32:
		return IdRange{}, fmt.Errorf("the user kubelet has the subordinate ids %d to %d, which must be whole ranges of %d above the first",
			ids.First, ids.First+ids.Length-1, IdsPerPod)
	}
	return ids, nil
}
