//go:build e2e

package page

import (
	"os"
	"testing"
)

func TestTry(t *testing.T) {
	s := serve(t)
	s.fill(t)
	b := chromium(t)
	for name, path := range map[string]string{"overview": "", "pod": "page/pod/default/mqtt-edge-7", "node": "page/node", "manifests": "page/manifests", "manifest": "page/manifest?path=" + s.dir + "/mqtt.yaml"} {
		for _, w := range []int{390, 1280} {
			for _, scheme := range []string{"dark", "light"} {
				h := 800
				if w == 390 {
					h = 844
				}
				p := b.open(t, s.root+path, w, h, scheme)
				_ = os.WriteFile("/tmp/page-"+name+"-"+scheme+map[int]string{390: "-390", 1280: "-1280"}[w]+".png", p.shot(), 0o644)
			}
		}
	}
}
