package manifests

import "testing"

// Names of pods have the node's in them. A pod that is given under the present name of the node does
// not run a second time under the former one, whatever else keeps what no manifest gives.
func TestAPodDoesNotRunUnderTwoNamesOfTheNode(t *testing.T) {
	called := func(name string) func(*SourceConfig) {
		return func(c *SourceConfig) { c.NodeName, c.NameSuffix = name, true }
	}
	ofURL := Answer{Data: []byte(podYAML("a") + "---\n" + podYAML("b"))}
	for name, r := range map[string]struct {
		pods []string // that the folder gives at first; the others are the URL's
		then func(p *looker, c *SourceConfig)
		want string
	}{
		"a folder on another file system, as of a restored backup": {[]string{"a", "b"}, func(p *looker, c *SourceConfig) {
			c.Dir = elsewhere(p.T)
			fill(p.T, c.Dir, "a", "b")
		}, "a-edge8@a.yaml=busybox b-edge8@b.yaml=busybox"},
		"one that lacks a file": {[]string{"a", "b"}, func(p *looker, c *SourceConfig) {
			c.Dir = elsewhere(p.T)
			fill(p.T, c.Dir, "a")
		}, "a-edge8@a.yaml=busybox b-edge7@b.yaml=busybox folder ?"},
		"a file with an error": {[]string{"a", "b"}, func(p *looker, _ *SourceConfig) {
			p.put("a.yaml", podYAML("a")+"---\nkind: [\n")
		}, "a-edge8@a.yaml=busybox b-edge8@b.yaml=busybox bad:a.yaml ?"},
		"a URL that is away, by its saved answer": {nil, func(_ *looker, c *SourceConfig) {
			asks(c)
			c.Cached = &ofURL
		}, "a-edge8@pods=busybox b-edge8@pods=busybox"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, r.pods...)
			p := at(t, dir, func(c *SourceConfig) {
				called("edge7")(c)
				if r.pods == nil {
					asks(c)
				}
			})
			if r.pods == nil {
				p.gets(ofURL, "a-edge7@pods=busybox b-edge7@pods=busybox")
			}
			p.next(func(c *SourceConfig) {
				called("edge8")(c)
				r.then(p, c)
			}).expect(r.want)
		})
	}
}

// While nothing gives a pod under the present name of the node, it runs on under the former one.
func TestAPodRunsOnUnderAFormerNameOfTheNode(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a", "b")
	p := at(t, dir, func(c *SourceConfig) { c.NodeName, c.NameSuffix = "edge7", true })
	p.next(func(c *SourceConfig) {
		c.NodeName, c.NameSuffix, c.Dir = "edge8", true, dir+".away"
	}).expect("a-edge7@a.yaml=busybox b-edge7@b.yaml=busybox folder ?")
}
