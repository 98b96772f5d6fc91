package oom

import (
	"fmt"
	"path"
	"strings"
)

// Words returns what happened to the container with this id, of the pod with this uid, as it is
// reported of its end.
func (k Kill) Words(uid, id string) string {
	text := "the kernel killed its process " + k.Process + ": "
	if k.Limit == "" {
		return text + "the machine ran out of memory" + k.resident()
	}
	whose := k.whose(uid, id)
	if k.Most == 0 {
		return text + whose + " reached its memory limit" + k.resident()
	}
	return fmt.Sprintf("%s%s used %s of its memory limit of %s", text, whose, amount(k.Used), amount(k.Most))
}

// resident returns what the process used.
func (k Kill) resident() string {
	if k.Resident == 0 {
		return ""
	}
	return ", and the process used " + amount(k.Resident)
}

// whose returns whose limit was reached.
func (k Kill) whose(uid, id string) string {
	switch {
	case strings.Contains(path.Base(k.Limit), id):
		return "the container"
	case strings.Contains(k.Limit, id):
		return "a cgroup in the container"
	case strings.HasPrefix(k.Cgroup, k.Limit+"/") && IsOfPod(path.Base(k.Limit), uid):
		return "the pod"
	}
	return "the cgroup " + k.Limit
}

// IsOfPod reports whether a cgroup has the uid of a pod in its name.
func IsOfPod(cgroup, uid string) bool {
	return uid != "" && strings.Contains(strings.ReplaceAll(cgroup, "_", "-"), uid) // systemd has no dashes in names
}

// amount returns bytes in MiB, as whole ones if they are, or in KiB if they are less than one.
func amount(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
