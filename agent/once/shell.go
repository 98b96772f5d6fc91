package once

import "monopod/manifests/shell"

// Removal is the command that removes the rest of a run, to be copied into a
// shell.
func Removal(dir string) string { return "`monopod once --remove " + shell.Word(dir) + "`" }
