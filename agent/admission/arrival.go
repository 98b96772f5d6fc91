package admission

import (
	"cmp"
	"slices"
	"time"

	"monopod/manifests"
)

// arrival is the position of a pod in the order of admission.
type arrival struct {
	seen time.Time // when the manifest was first read; zero: not known
	name string
}

// annSeen is the annotation with the time when the manifest was first read.
const annSeen = "kubernetes.io/config.seen"

func arrivalOf(p *manifests.Pod) arrival {
	seen, _ := time.Parse(time.RFC3339Nano, p.Annotations[annSeen])
	return arrival{seen, p.Key().String()}
}

func (a arrival) compare(b arrival) int {
	return cmp.Or(a.seen.Compare(b.seen), cmp.Compare(a.name, b.name))
}

// ByArrival sorts pods in the order of their admission.
func ByArrival(pods []*manifests.Pod) {
	at := make(map[*manifests.Pod]arrival, len(pods))
	for _, p := range pods {
		at[p] = arrivalOf(p)
	}
	slices.SortFunc(pods, func(a, b *manifests.Pod) int { return at[a].compare(at[b]) })
}
