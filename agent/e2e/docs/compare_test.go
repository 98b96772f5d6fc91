package docs

import "testing"

// What varies from run to run is no difference; all else is.
func TestSame(t *testing.T) {
	for _, c := range []struct {
		name          string
		quoted, shown string
		want          bool
	}{
		{"the same", "a\nb", "a\nb\n", true},
		{"another word", "a\nb", "a\nc", false},
		{"a line more", "a", "a\nb", false},
		{"a line less", "a\nb", "a", false},
		{"an age, and the column that is as wide", "hello   1/1   3s\n", "hello   1/1   2m13s  \n", true},
		{"a figure that is no age", "hello 1/1", "hello 2/1", false},
		{"a version that knows its commit", "monopod 1.2 (go1.26.8, linux/amd64)", "monopod 1.3 (a1bbc25f5378 of 2026-11-26 11:30:45 UTC, go1.26.8, linux/arm64)", true},
		{"times", "since 2026-11-26 09:00:01 UTC", "since 2027-01-02 19:10:33 UTC", true},
		{"ids", "id 0123456789abcdef", "id fedcba9876543210ff", true},
		{"a word of letters that ids have, too", "a bed", "a bad", false},
		{"the next start", "; next start in 40 s", "; next start in 5 min", true},
		{"addresses of pods", "10.88.0.3", "10.120.7.9", true},
		{"addresses of the machine", "192.0.2.7", "192.0.2.8", false},
		{"a line that is broken elsewhere", "a b c\n  d", "a b\n  c d", true},
		{"what is waited for", "done", "monopod: waiting until pod a is stopped: b\ndone", true},
		{"what is not there yet", "done", "monopod: there is no pod \"a\"; `monopod ps` lists them; waiting for it\ndone", true},
		{"a former version that is on its way", "x; the former version is back until the manifest\n  changes; y", "x; the former version comes back; y", true},
		{"the order in which pods get ready", "a/b: ready\na/c: ready\nx", "a/c: ready\na/b: ready\nx", true},
		{"a pod that does not", "a/b: ready\na/c: ready\nx", "a/c: ready\nx", false},
		{"lines that are left out", "a\n...\nd", "a\nb\nc\nd", true},
		{"none is left out", "a\n...\nd", "a\nd", true},
		{"what is behind them counts", "a\n...\nd", "a\nb\nc", false},
		{"at the end", "a\n...", "a\nb\nc", true},
		{"twice", "a\n...\nc\n...\ne", "a\nb\nc\nd\ne", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Same(c.quoted, c.shown); got != c.want {
				t.Errorf("Same is %v; plain they are\n%s\nand\n%s", got, Plain(c.quoted), Plain(c.shown))
			}
		})
	}
}
