//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
)

func runsGoodBesideBad(w *world) {
	bad := []struct {
		file, text string
		line       int // of the problem
		says       string
	}{
		{"broken.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x\nspec: 1\n", 0, ""},
		{"unknown-field.yaml", w.manifest("x1", strings.Replace(sleeper, "image:", "imige:", 1)), 11, "imige"},
		{"wrong-type.yaml", w.manifest("x2", strings.Replace(sleeper, "hostNetwork: true", "hostNetwork: 7", 1)), 7, "hostNetwork"},
		{"no-name.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, image: i}]}\n", 0, "name"},
		{"no-containers.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x4}\nspec: {}\n", 0, "containers"},
		{"unknown-kind.yaml", "apiVersion: v1\nkind: Poodle\nmetadata: {name: x5}\n", 2, "Poodle"},
	}
	for _, b := range bad {
		w.writeFile(b.file, b.text)
	}
	w.start()
	w.write("good", sleeper)
	good := w.running("good")
	for _, b := range bad {
		w.ps(b.file + ":")
		w.manifests("has a problem of "+b.file, func(r report) bool {
			pods, held, problems := r.file(b.file)
			return len(pods) == 0 && !held && slices.ContainsFunc(problems, func(p problem) bool {
				return p.Line > 0 && p.Column > 0 && (b.line == 0 || p.Line == b.line) && strings.Contains(p.Field+" "+p.Message, b.says)
			})
		})
		if b.line > 0 {
			w.ps(fmt.Sprintf("%s:%d:", b.file, b.line), b.says)
		}
		if n := logLines(w, fmt.Sprintf("%s:%d:", b.file, b.line)); b.line > 0 && n != 1 {
			w.Errorf("the log speaks %d times of line %d of %s, want once", n, b.line, b.file)
		}
	}

	w.writeFile("broken.yaml", w.manifest("healed", sleeper))
	w.running("healed")
	w.manifests("has no problem of broken.yaml any more", func(r report) bool {
		pods, _, problems := r.file("broken.yaml")
		return len(pods) == 1 && len(problems) == 0
	})
	w.same(good)
}

func holdsThroughABadEdit(w *world) {
	w.start()
	w.write("held", sleeper)
	before := w.running("held")
	w.writeFile("held.yaml", strings.Replace(w.manifest("held", sleeper), "containers:", "containerz:", 1))
	held := func(r report) bool {
		_, held, problems := r.file("held.yaml")
		return held && slices.ContainsFunc(problems, func(p problem) bool { return p.Line == 9 })
	}
	w.manifests("the last good version is held", held)
	w.ps("held.yaml:9:")
	w.barrier("after")
	w.same(before)

	w.kill() // the last good version survives the agent
	w.start()
	w.manifests("it is held after a restart", held)
	w.barrier("after2")
	w.same(before)

	w.write("held", sleeper)
	w.manifests("is healed", func(r report) bool {
		pods, held, problems := r.file("held.yaml")
		return len(pods) == 1 && !held && len(problems) == 0
	})
	w.same(before)
}

func waitsForTheFolder(w *world) {
	check(w.T, os.Remove(w.agent.Manifests))
	w.start()
	w.manifests("the folder is missing", func(r report) bool { return len(r.Problems) > 0 })
	w.ps(w.agent.Manifests)
	check(w.T, os.Mkdir(w.agent.Manifests, 0o755))
	w.write("one", sleeper)
	w.running("one")
	w.manifests("the folder is there", func(r report) bool { return len(r.Problems) == 0 })
}

func holdsWhenTheFolderVanishes(w *world) {
	w.start()
	w.write("one", sleeper)
	w.write("two", sleeper)
	before := w.running("one", "two")
	away := filepath.Join(w.agent.Dir, "away")
	check(w.T, os.Rename(w.agent.Manifests, away))
	w.manifests("the folder is missing", func(r report) bool { return len(r.Problems) > 0 })
	w.ps(w.agent.Manifests)
	w.kill() // nor does a new agent take a missing folder for an empty one
	w.start()
	w.manifests("the folder is missing", func(r report) bool { return len(r.Problems) > 0 })
	for pod := range before {
		w.phase(pod, v1.PodRunning)
	}
	w.same(before)

	check(w.T, os.Rename(away, w.agent.Manifests))
	w.manifests("the folder is back", func(r report) bool { return len(r.Problems) == 0 && len(r.Files) == 2 })
	w.remove("two")
	w.until("two is gone", func() error { return none(w.sandboxes("two")) })
	delete(before, "two")
	w.same(before)
}

// none returns an error if there are any.
func none(ss []rig.Sandbox) error {
	if len(ss) > 0 {
		return os.ErrExist
	}
	return nil
}
