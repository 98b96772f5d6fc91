package documents

import "monopod/manifests/decode"

// helmHook is the annotation by which helm marks objects that it runs itself at an install, an
// upgrade or a test (helm.sh/docs/topics/charts_hooks). `helm template` prints them together with
// the others.
const helmHook = "metadata.annotations[helm.sh/hook]"

const hookIsSkipped = " is skipped: a hook or test of helm's; without the annotation it runs here"

// isHelms reports whether an object is a hook or a test of helm. A version of such an object that a
// former monopod accepted, which ignored the annotation, keeps running.
func isHelms(o decode.Object) bool {
	return decode.Text(o.Node, "metadata", "annotations", "helm.sh/hook") != ""
}
