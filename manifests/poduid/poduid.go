// Package poduid says what the uid of a pod may be.
package poduid

import "regexp"

// Rule says in words what Valid reports, for whoever reads a refusal.
const Rule = "must be 1 to 63 letters, digits and '-'"

var form = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}$`)

// Valid reports whether a pod may have the uid. Folders and cgroups are called
// by it, so it is part of a file name and of a unit of systemd, wherever that
// puts '_' for '-': without '/', '.' and '_' it leads nowhere else and is never
// taken for another one.
func Valid(uid string) bool { return form.MatchString(uid) }
