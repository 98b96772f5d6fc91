package print

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (d *description) volumes() {
	if len(d.pod.Spec.Volumes) == 0 {
		return
	}
	d.line(0, "Volumes", "")
	for i := range d.pod.Spec.Volumes {
		v := &d.pod.Spec.Volumes[i]
		d.line(2, v.Name, VolumeWords(v))
	}
}

// VolumeWords returns the description of a volume.
func VolumeWords(v *v1.Volume) string {
	switch {
	case v.HostPath != nil:
		s := "host path " + v.HostPath.Path
		if t := v.HostPath.Type; t != nil && *t != "" {
			s += fmt.Sprintf(" (%s)", *t)
		}
		return s
	case v.EmptyDir != nil:
		return emptyDirWords(v.EmptyDir)
	case v.ConfigMap != nil:
		return "config map " + v.ConfigMap.Name + optionally(v.ConfigMap.Optional)
	case v.Secret != nil:
		return "secret " + v.Secret.SecretName + optionally(v.Secret.Optional)
	case v.DownwardAPI != nil:
		return "the pod's own fields"
	case v.Projected != nil:
		return projectedWords(v.Projected)
	case v.Image != nil:
		return "image " + v.Image.Reference
	case v.PersistentVolumeClaim != nil:
		return claimWords(v.PersistentVolumeClaim)
	}
	return "of a kind that does not exist here"
}

func claimWords(c *v1.PersistentVolumeClaimVolumeSource) string {
	s := "claim " + c.ClaimName
	if c.ReadOnly {
		s += ", read-only"
	}
	return s
}

func emptyDirWords(e *v1.EmptyDirVolumeSource) string {
	s := "empty dir"
	if e.Medium != v1.StorageMediumDefault {
		s += " in " + string(e.Medium)
	}
	if e.SizeLimit != nil {
		s += ", at most " + e.SizeLimit.String()
	}
	return s
}

func projectedWords(p *v1.ProjectedVolumeSource) string {
	var from []string
	for _, s := range p.Sources {
		switch {
		case s.ConfigMap != nil:
			from = append(from, "config map "+s.ConfigMap.Name+optionally(s.ConfigMap.Optional))
		case s.Secret != nil:
			from = append(from, "secret "+s.Secret.Name+optionally(s.Secret.Optional))
		case s.DownwardAPI != nil:
			from = append(from, "the pod's own fields")
		}
	}
	return "projected: " + strings.Join(from, ", ")
}

// VolumeFacts are what DescribeVolume prints.
type VolumeFacts struct {
	Name, Path string
	UsedBy     []string // namespace/name of the pods
	MakeBy     string   // the command that makes it again, empty: it was made, and does not exist; "": it exists
	Made       time.Time
	Bytes      *int64 // on its disk; nil: not known
}

// DescribeVolume prints everything that is known of a volume.
func DescribeVolume(w *bytes.Buffer, v VolumeFacts, f Format) {
	d := &description{w: w, now: f.Now, columns: f.Columns}
	d.line(0, "Name", v.Name)
	d.line(0, "Path", v.Path)
	if v.MakeBy != "" {
		d.line(0, "Missing", "yes: mount its disk, or make it again, empty: "+v.MakeBy)
	}
	if v.Bytes != nil {
		d.line(0, "Size Used", size(uint64(*v.Bytes)))
	}
	if !v.Made.IsZero() {
		d.line(0, "Made", d.ago(metav1.NewTime(v.Made)))
	}
	d.lines(0, "Used By", v.UsedBy)
}
