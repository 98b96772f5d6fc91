package documents

import "monopod/manifests/decode"

// helmHook is the annotation by which helm tells what it runs itself at an install, an upgrade or
// a test from what is to be there (helm.sh/docs/topics/charts_hooks). `helm template` prints both.
const helmHook = "metadata.annotations[helm.sh/hook]"

const hookIsSkipped = " is skipped: a hook or test of helm's; without the annotation it runs here"

// isHelms reports whether an object is a hook or a test of helm's. A version of one that a former
// monopod accepted, which did not tell them apart, runs on.
func isHelms(o decode.Object) bool {
	return decode.Text(o.Node, "metadata", "annotations", "helm.sh/hook") != ""
}
