package agent

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/podspec"
	"monopod/agent/rollout"
	"monopod/cri/critest"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// reference is how the regular containers of a pod of the model use the ConfigMap conf.
type reference string

const (
	toNothing  reference = ""
	toVariable reference = "variable"
	toRestart  reference = "variable, and restart for it"
	toFile     reference = "file"
)

// annotations of the wish's pod.
func (w wish) annotations() string {
	var all []string
	if w.refers == toRestart {
		all = append(all, annotations.RestartOnConfigChange+`: "true"`)
	}
	if w.volume {
		all = append(all, "monopod.update-lock: /v/"+modelLock)
	}
	if w.watched {
		all = append(all, "monopod.update-health: 20s")
	}
	if len(all) == 0 {
		return ""
	}
	return "  annotations: {" + strings.Join(all, ", ") + "}\n"
}

func (f reference) variable() string {
	if f != toVariable && f != toRestart {
		return ""
	}
	return ", env: [{name: CONF, valueFrom: {configMapKeyRef: {name: conf, key: k}}}]"
}

// referenceOf returns it of a pod.
func referenceOf(p *v1.Pod) reference {
	switch {
	case slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool { return v.ConfigMap != nil }):
		return toFile
	case len(p.Spec.Containers[0].Env) == 0:
		return toNothing
	case p.Annotations[annotations.RestartOnConfigChange] != "":
		return toRestart
	}
	return toVariable
}

// objects are what the manifests give besides pods.
func (w *walk) objects() []*manifests.Object {
	if w.object == "" {
		return nil
	}
	m := &v1.ConfigMap{Data: map[string]string{"k": w.object}}
	m.Namespace, m.Name = "default", "conf"
	return []*manifests.Object{manifests.NewObject(m, nil, "/m/conf.yaml")}
}

func (w *walk) changeObject() {
	w.values++
	w.object = fmt.Sprint("value", w.values)
}

// turnObject makes the object come, change or go.
func (w *walk) turnObject() string {
	if w.object != "" && w.rand.IntN(3) == 0 {
		w.object = ""
	} else {
		w.changeObject()
	}
	w.deliver()
	return fmt.Sprintf("the object is %q", w.object)
}

// conf returns a container's variable of the object.
func conf(c critest.Container) string {
	for _, e := range c.Config.GetEnvs() {
		if e.Key == "CONF" {
			return string(e.Value)
		}
	}
	return ""
}

// baseless names a container that was made without the object that it needs.
func (w *walk) baseless() string {
	for _, c := range w.ourContainers() {
		p := w.offered[manifests.Key{Namespace: c.Namespace, Name: c.Pod}]
		record := w.written(types.UID(c.UID))
		if p == nil || record.Digest != p.Digest || !slices.ContainsFunc(p.Spec.Containers, func(r v1.Container) bool { return r.Name == c.Name }) {
			continue // of a version before
		}
		if made, _ := strconv.Atoi(c.Config.GetAnnotations()[podspec.AnnRevision]); made < record.Changed[c.Name] {
			continue // likewise, in whose place the one of now was accepted
		}
		p = rollout.WithUID(p, types.UID(c.UID))
		switch referenceOf(p.Pod) {
		case toVariable, toRestart:
			if !strings.HasPrefix(conf(c), "value") {
				return fmt.Sprintf("%s/%s was made without its object", c.Pod, c.Name)
			}
		case toFile:
			if text, err := os.ReadFile(w.confFile(p)); c.State == rt.ContainerState_CONTAINER_RUNNING && (err != nil || !strings.HasPrefix(string(text), "value")) {
				return fmt.Sprintf("%s/%s runs without its object: %q, %v", c.Pod, c.Name, text, err)
			}
		}
	}
	return ""
}

func (w *walk) confFile(p *manifests.Pod) string {
	return filepath.Join(w.dir, "pods", string(p.UID), "volumes", "kubernetes.io~configmap", "conf", "k")
}

// wrongContent says what of the object a running container has that it should not have now.
func (w *walk) wrongContent(p *manifests.Pod, c critest.Container) string {
	switch referenceOf(p.Pod) {
	case toRestart:
		if has := conf(c); has != w.object && slices.ContainsFunc(p.Spec.Containers, func(r v1.Container) bool { return r.Name == c.Name }) {
			return fmt.Sprintf("has the variable %s, and it is %s", has, w.object)
		}
	case toFile:
		if text, err := os.ReadFile(w.confFile(p)); err != nil || string(text) != w.object {
			return fmt.Sprintf("sees the file %s, and it is %s (%v)", text, w.object, err)
		}
	}
	return ""
}

// versionOf returns the version that runs of the pod that is offered: after a way back it is another one.
func (w *walk) versionOf(offered *manifests.Pod) *manifests.Pod {
	r := w.sync.pods.see(offered.Key())
	if r == nil || r.Now.Run == nil {
		return offered
	}
	return r.Now.Run
}

// objectsLeaveAlone checks that a change of the object, and its end, restarts nothing but
// what asks for it.
func (w *walk) objectsLeaveAlone() {
	w.Helper()
	if w.rand.IntN(4) > 0 || !w.up || w.restless() {
		return
	}
	for _, p := range w.offered {
		if referenceOf(p.Pod) == toRestart || referenceOf(w.versionOf(p).Pod) == toRestart {
			return
		}
	}
	running := func() map[string]bool {
		out := map[string]bool{}
		for _, c := range w.ourRunning() {
			out[c.ID] = true
		}
		return out
	}
	before := running()
	w.changeObject()
	w.deliver()
	synctest.Wait()
	if wrong := w.wrong(); len(wrong) > 0 {
		w.Fatalf("after a change of the object: %s", strings.Join(wrong, "\n"))
	}
	now := w.object
	w.object = ""
	w.deliver()
	w.after(time.Second)
	if after := running(); !maps.Equal(before, after) {
		w.Fatalf("a change of the object made of %v %v", before, after)
	}
	w.object = now
	w.deliver()
	synctest.Wait()
	w.note("the object changed, went and came")
}
