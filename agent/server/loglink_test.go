package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"monopod/agent/podlog"
)

// What cannot be read is answered with its reason; only an answer that has started is
// broken off.
func TestALogThatCannotBeReadIsAnAnswer(t *testing.T) {
	for name, spoil := range map[string]func(log string) error{
		"it is not a regular file":                               func(log string) error { return unix.Mkfifo(log, 0o600) },
		"it is a link, and links are not followed here":          func(log string) error { return os.Symlink("/etc/hostname", log) },
		"it is a link, and links are not followed here (folder)": nil,
	} {
		t.Run(name, func(t *testing.T) {
			podLogs := t.TempDir()
			w := serve(t, func(c *Config) { c.PodLogs = podLogs })
			p := logged(t, podLogs)
			w.store.SetPod("default/web-n", p)
			dir := podlog.Dir(podLogs, p, "runs")
			log := filepath.Join(dir, "1.log")
			if err := os.Remove(log); err != nil {
				t.Fatal(err)
			}
			if spoil == nil {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				spoil = func(string) error { return os.Symlink("/etc", dir) }
			}
			if err := spoil(log); err != nil {
				t.Fatal(err)
			}
			why, _, _ := strings.Cut(name, " (")
			for _, query := range []string{"", "?follow=1", "?tailLines=1"} {
				code, body, _ := w.ask(t, true, "GET", "/containerLogs/default/web-n/runs"+query)
				if code != 500 || !strings.HasPrefix(body, `the log of container "runs" in pod "web-n" cannot be read: `) || !strings.Contains(body, why) {
					t.Errorf("%s: %d %s", query, code, body)
				}
			}
		})
	}
}
