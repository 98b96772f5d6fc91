package update

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func BenchmarkCompare(b *testing.B) {
	for _, row := range []struct {
		name string
		edit func(*v1.Pod)
	}{
		{"equal", func(*v1.Pod) {}},
		{"seen later", annotate("kubernetes.io/config.seen", "2027-01-01T00:00:00.000000000Z")},
		{"a label", func(p *v1.Pod) { p.Labels["app"] = "api" }},
		{"an image", app(func(c *v1.Container) { c.Image = "web:2" })},
	} {
		b.Run(row.name, func(b *testing.B) {
			old, new := pod(b), pod(b, row.edit)
			b.ReportAllocs()
			for b.Loop() {
				Compare(old, new)
			}
		})
	}
}
