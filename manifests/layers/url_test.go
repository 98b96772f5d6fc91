package layers

import (
	"testing"

	"monopod/manifests"
)

// asking is layered with a URL, which has not answered yet.
func asking(t *testing.T, url string, files map[string]string, test func(*stack)) {
	t.Helper()
	layered(t, files, func(s *stack) {
		s.url = url
		s.restart()
		test(s)
	})
}

// A file masks files of folders, and not the URL that happens to end in its name.
func TestAMaskOfAFileIsNoneOfTheURL(t *testing.T) {
	asking(t, "http://boxes/edge7/pods.yaml", map[string]string{"usr/pods.yaml": pod("a", "v1"), "etc/pods.yaml": ""}, func(s *stack) {
		const want = "k@http://boxes/edge7/pods.yaml"
		s.answers <- manifests.Answer{Data: []byte(pod("u", "v1") + "---\n" + configMap("k", "v"))}
		s.expect("u=v1@http://boxes/edge7/pods.yaml " + want)
		s.restart()
		s.expect("u=v1@http://boxes/edge7/pods.yaml " + want)
	})
}

// What the URL gives is below all folders, and takes the place of what they give once that is
// proven gone.
func TestTheURLIsBelowAllFolders(t *testing.T) {
	asking(t, "http://boxes/pods", map[string]string{"usr/a.yaml": pod("a", "v1"), "etc/b.yaml": pod("b", "v1")}, func(s *stack) {
		const folders = "a=v1@usr/a.yaml b=v1@etc/b.yaml u=v1@http://boxes/pods"
		s.answers <- manifests.Answer{Data: []byte(pod("u", "v1") + "---\n" + pod("b", "v0") + "---\n" + pod("a", "v0"))}
		s.expect(folders)
		s.away("etc")
		s.expect(folders)
		s.restart()
		s.expect(folders)
		s.back("etc")
		s.remove("etc/b.yaml")
		s.expect("a=v1@usr/a.yaml b=v0@http://boxes/pods u=v1@http://boxes/pods")
	})
}
