package layers

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"monopod/manifests"
	"monopod/manifests/decode"
	"monopod/manifests/poduid"
)

// content is pods and objects by their keys.
type content struct {
	pods    map[manifests.Key]*manifests.Pod
	objects map[manifests.ObjectKey]*manifests.Object
}

func known(pods []*manifests.Pod, objects []*manifests.Object) content {
	c := content{map[manifests.Key]*manifests.Pod{}, map[manifests.ObjectKey]*manifests.Object{}}
	for _, p := range pods {
		c.pods[p.Key()] = p
	}
	for _, o := range objects {
		c.objects[o.Key()] = o
	}
	return c
}

// merged is what several folders give together.
type merged struct {
	content
	layers *Layers
	moved  map[string]string
	given  map[string][]string
	lost   map[string]map[string]bool               // by file, the names that it gives without effect
	extra  map[string][]decode.Problem              // by file
	hashes map[string]map[string]poduid.ContentHash // by file, of pods whose uid is not the one of their file
	copies map[*manifests.File]*manifests.File      // files as they are reported, by those of their folders
}

// merge decides what is desired.
func (l *Layers) merge() *merged {
	m := &merged{content: known(nil, nil), layers: l, given: map[string][]string{}, lost: map[string]map[string]bool{},
		extra: map[string][]decode.Problem{}, hashes: map[string]map[string]poduid.ContentHash{}, copies: map[*manifests.File]*manifests.File{}}
	claims, objects := map[manifests.Key][]*manifests.Pod{}, map[manifests.ObjectKey][]*manifests.Object{}
	for k, one := range l.all {
		for _, p := range one.seen.Pods {
			if !one.isMasked(p.File) {
				claims[p.Key()] = put(claims[p.Key()], k, p, len(l.all))
			}
		}
		for _, o := range one.seen.Objects {
			if !one.isMasked(o.File) {
				objects[o.Key()] = put(objects[o.Key()], k, o, len(l.all))
			}
		}
	}
	for key := range l.current.pods {
		claims[key] = put(claims[key], 0, nil, len(l.all))
	}
	for key := range l.current.objects {
		objects[key] = put(objects[key], 0, nil, len(l.all))
	}
	for key, all := range claims {
		decide(m, key.String(), all, l.current.pods[key], m.takePod)
	}
	for key, all := range objects {
		decide(m, key.String(), all, l.current.objects[key], m.takeObject)
	}
	m.separateUIDs()
	m.noteMoved()
	return m
}

// isMasked reports whether another folder masks a file of this one. The Source leaves it out with its
// next pass, and while it cannot read its folder it does not: the mask is proof enough. What the URL
// gives is no file of a folder, whatever the URL ends in.
func (l *layer) isMasked(file string) bool {
	return !manifests.IsURL(file) && l.asked.Masked[filepath.Base(file)] != ""
}

// put stores v, unless it is nil, as what the k-th of n folders gives.
func put[T any](all []*T, k int, v *T, n int) []*T {
	if all == nil {
		all = make([]*T, n)
	}
	if v != nil {
		all[k] = v
	}
	return all
}

// decide takes what the highest folder that gives a name gives of it: all has what each is known to
// give, the lowest first. Of a folder that gives it, though it is not known what, the present one
// stays.
func decide[T any](m *merged, name string, all []*T, now *T, take func(name string, winner *T, others []*T)) {
	var givers []string
	var winner *T
	var unread *layer
	for k, one := range slices.Backward(m.layers.all) {
		isUnread := all[k] == nil && m.layers.isUnread(one, name)
		if all[k] == nil && !isUnread {
			continue
		}
		givers = append(givers, one.dir)
		switch {
		case winner != nil || unread != nil:
		case isUnread:
			unread = one
		default:
			winner = all[k]
		}
	}
	if len(givers) > 1 || unread != nil {
		slices.Reverse(givers)
		m.given[name] = givers
	}
	switch {
	case winner != nil:
		take(name, winner, all)
	case unread != nil && now != nil:
		take(name, now, all)
	case unread != nil:
		take(name, nil, all)
		m.withhold(name, unread.dir, all)
	}
}

// isUnread reports whether a folder gave a name, as did another, and has not shown since the agent
// started that it does not any more.
func (l *Layers) isUnread(one *layer, name string) bool {
	return slices.Contains(l.given[name], one.dir) && !one.gave[name] && (one.seen == nil || !one.seen.Complete)
}

// withhold reports why what folders give of a name has no effect.
func (m *merged) withhold(name, dir string, all any) {
	why := fmt.Sprintf("%s gave it when it was read last, and cannot be read now: it waits for that folder; "+
		"or give it up there with: monopod forget %s", dir, forgetName(name))
	switch all := all.(type) {
	case []*manifests.Pod:
		for _, p := range all {
			if p != nil {
				m.warn(p.File, decode.Problem{Pod: name, Message: why})
			}
		}
	case []*manifests.Object:
		for _, o := range all {
			if o != nil {
				m.warn(o.File, decode.Problem{Object: name, Message: why})
			}
		}
	}
}

// forgetName returns a name in the form of monopod forget.
func forgetName(name string) string {
	kind, object, isObject := strings.Cut(name, " ")
	if !isObject {
		return name[strings.Index(name, "/")+1:]
	}
	return strings.ToLower(kind) + "/" + object[strings.Index(object, "/")+1:]
}

func (m *merged) warn(file string, p decode.Problem) {
	p.File, p.Warning = file, true
	m.extra[file] = append(m.extra[file], p)
}

// lose records that what a file gives of a name has no effect.
func (m *merged) lose(file, name string) {
	if m.lost[file] == nil {
		m.lost[file] = map[string]bool{}
	}
	m.lost[file][name] = true
}

// takePod makes a pod the desired one; nil: none is. One that equals the present pod is replaced by
// that, which keeps its uid and the time it was first seen.
func (m *merged) takePod(name string, winner *manifests.Pod, all []*manifests.Pod) {
	for _, p := range all {
		if p != nil && (winner == nil || p.File != winner.File) {
			m.lose(p.File, name)
		}
	}
	if winner == nil {
		return
	}
	pod, now := winner, m.layers.current.pods[winner.Key()]
	if now != nil && now != winner && now.Digest == winner.Digest && now.Spec.NodeName == winner.Spec.NodeName && isComputed(now, winner) {
		pod = now.In(winner.File)
		m.rehash(pod)
	}
	m.pods[pod.Key()] = pod
}

// isComputed reports whether neither manifest sets the uid, or both set the same.
func isComputed(a, b *manifests.Pod) bool {
	return a.UID == b.UID || poduid.IsComputed(a.UID) && poduid.IsComputed(b.UID)
}

// rehash records the hash of a pod in its file.
func (m *merged) rehash(p *manifests.Pod) {
	if m.hashes[p.File] == nil {
		m.hashes[p.File] = map[string]poduid.ContentHash{}
	}
	m.hashes[p.File][p.Key().String()] = poduid.HashOf(p.Pod)
}

// takeObject is takePod for objects.
func (m *merged) takeObject(_ string, winner *manifests.Object, _ []*manifests.Object) {
	if winner == nil {
		return
	}
	m.objects[winner.Key()] = winner
}

// separateUIDs lets only one pod use a uid, as a Source does: the pod that has it already, else the
// first by name.
func (m *merged) separateUIDs() {
	owner := map[types.UID]manifests.Key{}
	for key, p := range m.pods {
		if now := m.layers.current.pods[key]; now != nil && now.UID == p.UID {
			owner[p.UID] = key
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(m.pods), manifests.CompareKeys) {
		pod := m.pods[key]
		first, taken := owner[pod.UID]
		if !taken || first == key {
			owner[pod.UID] = key
			continue
		}
		delete(m.pods, key)
		m.lose(pod.File, key.String())
		m.extra[pod.File] = append(m.extra[pod.File], decode.Problem{File: pod.File, Pod: key.String(), Field: "metadata.uid", Message: manifests.UIDTaken(m.pods[first])})
		if now := m.layers.current.pods[key]; now != nil && now.UID != pod.UID {
			m.pods[key] = now
		}
	}
}

// noteMoved records which pods another file gives than at first, as a Source does.
func (m *merged) noteMoved() {
	for key, p := range m.pods {
		now, name := m.layers.current.pods[key], key.String()
		if now != nil && now.File != p.File || m.layers.moved[name] != "" {
			if m.moved == nil {
				m.moved = map[string]string{}
			}
			m.moved[name] = p.File
		}
	}
}
