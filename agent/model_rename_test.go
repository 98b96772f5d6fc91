package agent

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"monopod/manifests"
)

// rename gives a manifest with a uid of its own another name.
func (w *walk) rename() string {
	from, to := pick(w.rand, modelPods...), pick(w.rand, modelPods...)
	old, there := w.wishes[from]
	if _, taken := w.wishes[to]; !there || taken || old.uid == "" {
		return ""
	}
	delete(w.wishes, from)
	old.name = to
	w.wishes[to] = old
	w.deliver()
	return from + ": rename to " + to
}

func isAgain(p, before *manifests.Pod) bool { return p.UID == before.UID && p.Key() == before.Key() }

// pod returns a wish as a pod; what was decoded once stays the same.
func (w *walk) pod(of wish) *manifests.Pod {
	key := fmt.Sprintf("%#v %v", of, w.noSuffix)
	if w.decoded[key] == nil {
		w.decoded[key] = of.pod(w.options)
	}
	return w.decoded[key]
}

// pods returns what the manifests say, of several with one uid the one that was
// offered already, else the first, as the Source does.
func (w *walk) pods() (out []*manifests.Pod) {
	owner := map[types.UID]manifests.Key{}
	for key, p := range w.offered {
		if wish, there := w.wishes[strings.TrimSuffix(p.Name, "-n")]; there && isAgain(w.pod(wish), p) {
			owner[p.UID] = key
		}
	}
	for _, name := range modelPods {
		wish, there := w.wishes[name]
		if !there {
			continue
		}
		p := w.pod(wish)
		if first, taken := owner[p.UID]; !taken || first == p.Key() {
			owner[p.UID] = p.Key()
			out = append(out, p)
		}
	}
	return out
}
