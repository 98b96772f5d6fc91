package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/agent/print"
	"monopod/agent/status"
	"monopod/cri/critest"
)

// listed is what `monopod ps`, or with files `monopod ps --files`, says below its table.
func (r *rig) listed(files bool) string {
	r.Helper()
	l := print.Listing{Manifests: r.store.Manifests(), Files: files}
	for _, p := range r.store.Pods() {
		l.Pods = append(l.Pods, *p)
	}
	var table, notes bytes.Buffer
	noErr(r.T, print.Ps(&table, &notes, l, print.Format{Now: time.Now()}))
	return strings.TrimSuffix(strings.ReplaceAll(notes.String(), r.dir, "ROOT"), "\n")
}

// version is what became of web in the first file.
func (r *rig) version() status.Version {
	r.Helper()
	f := r.store.Manifests().Files
	if len(f) == 0 || len(f[0].Versions) != 1 {
		r.Fatalf("files %+v", f)
	}
	v := f[0].Versions[0]
	v.Reason = strings.ReplaceAll(v.Reason, r.dir, "ROOT")
	return v
}

// One cause is one line, whether pods or files are listed, and the report of the manifests has it,
// too.
func TestWhatAVersionWaitsForWhileTheFormerOneRunsIsOneLine(t *testing.T) {
	const atFile = "/m/0.yaml: metadata.annotations[monopod.start-after]: "
	for name, row := range map[string]struct {
		do     func(r *rig) // while img:1 of web runs
		pods   string       // that ps says; WHY is the reason
		files  string       // that ps --files says
		reason string
	}{
		"a hold": {func(r *rig) { r.holds("web", "audit", ""); r.want(manifest("web", "img:2")) },
			"default/web: update waits: WHY", "/m/0.yaml: default/web-n waits: WHY", "held: audit (`monopod release web` ends it)"},
		"a window": {func(r *rig) { shut(r); r.change(r.configure); r.want(manifest("web", "img:2")) },
			"default/web: update waits: WHY", "/m/0.yaml: default/web-n waits: WHY", "outside of the update window, which opens Tue 2026-01-06 02:00:00 UTC"},
		"an image": {func(r *rig) { r.offline("img:9"); r.want(manifest("web", "img:9")); r.after(time.Minute) },
			"default/web: update waits: WHY; next try in 9 s", "/m/0.yaml: default/web-n waits: WHY; next try in 9 s",
			"image img:9 cannot be pulled: no route to host"},
		"room": {func(r *rig) { r.want(manifest("web", "img:2", "nodeSelector: {disk: ssd}")) },
			"default/web: update waits: WHY", "/m/0.yaml: default/web-n waits: WHY", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		"another pod": {func(r *rig) { r.want(after("web", "db", "img:2")) },
			atFile + "WHY (the last good version runs on)", atFile + "WHY (the last good version runs on)", "waits for default/db to be ready: there is no pod default/db"},
		"nothing: it gave way": {func(r *rig) { r.Program("img:2", critest.Exits(1)); r.want(watched("img:2")); r.after(2 * time.Minute) },
			"default/web: WHY", "/m/0.yaml: default/web-n: WHY",
			"update rolled back: version 8000b67b (img:2): it was not ready within 30s: container c ended with exit code 1; the former version is back until the manifest changes"},
		"the disk": {func(r *rig) {
			noErr(r.T, os.WriteFile(filepath.Join(r.dir, "updates"), nil, 0o600))
			r.want(watched("img:2"))
			r.after(time.Minute)
		}, "default/web: update waits: WHY", "/m/0.yaml: default/web-n waits: WHY",
			"what it may have to go back to is not on disk: record of the update of default/web-n: mkdir ROOT/updates: file exists"},
		"its owner": {func(r *rig) { r.stops("web"); r.want(manifest("web", "img:2")); r.after(time.Minute) },
			"default/web: Stopped: WHY", "/m/0.yaml: default/web-n waits: WHY", "stopped by request; `monopod start` runs it again"},
	} {
		t.Run(name, func(t *testing.T) {
			liveWith(t, clockIsSet, func(r *rig) {
				r.want(manifest("web", "img:1"))
				r.after(time.Minute)
				row.do(r)
				r.after(time.Second)
				r.saysWhy(row.pods, row.files, row.reason)
			})
		})
	}
}

// A pod of which nothing runs says it in its status, and so does its file.
func TestWhatAPodWaitsForBeforeItEverRunsIsOneLine(t *testing.T) {
	for name, row := range map[string]struct {
		do           func(r *rig)
		pods, reason string
	}{
		"room": {func(r *rig) { r.want(manifest("web", "img:1", "nodeSelector: {disk: ssd}")) }, "default/web: NodeAffinity: Pod was rejected: WHY",
			"Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		"another pod": {func(r *rig) { r.want(after("web", "db", "img:1")) }, "default/web: container c: WaitingForPods: WHY",
			"waits for default/db to be ready: there is no pod default/db"},
		"a hold of the node": {func(r *rig) { r.holds("", "audit", ""); r.want(manifest("web", "img:1")) }, "default/web: Held: Pod was rejected: WHY",
			"the node is held: audit (`monopod release` ends it)"},
		"its owner": {func(r *rig) { r.want(manifest("web", "img:1")); r.stops("web") }, "default/web: Stopped: WHY",
			"stopped by request; `monopod start` runs it again"},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				row.do(r)
				r.after(time.Minute)
				r.saysWhy(row.pods, "/m/0.yaml: default/web-n waits: WHY", row.reason)
			})
		})
	}
}

func (r *rig) saysWhy(pods, files, reason string) {
	r.Helper()
	if got, want := r.listed(false), strings.ReplaceAll(pods, "WHY", reason); got != want {
		r.Errorf("of pods it says\n%s\nwant\n%s", got, want)
	}
	if got, want := r.listed(true), strings.ReplaceAll(files, "WHY", reason); got != want {
		r.Errorf("of files it says\n%s\nwant\n%s", got, want)
	}
	if v := r.version(); v.Reason != reason {
		r.Errorf("its version is %s: %s\nwant %s", v.State, v.Reason, reason)
	}
}
