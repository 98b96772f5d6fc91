// Package poduid tells pods apart by their uids, and the contents of one pod by their hashes.
package poduid

import "strings"

// Rule describes a valid uid, for messages.
const Rule = "must be 1 to 63 letters, digits and '-'"

const characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

// Valid reports whether a pod may have the uid. Folders and cgroups have it in
// their names, so it is part of a file name and of a unit of systemd, which has
// '_' in place of '-': without '/', '.' and '_' it leads nowhere else and is
// never taken for another one.
func Valid(uid string) bool {
	return len(uid) >= 1 && len(uid) <= 63 && strings.Trim(uid, characters) == ""
}
