package agent

import (
	"cmp"
	"time"

	"monopod/agent/image"
)

// ever is the longest age of an image that can be set.
const ever = 100 * 365 * 24 * time.Hour

// images takes how fast images are pulled and when they go again.
func (r *configReader) images() {
	f, to := &r.file, &r.to.Images
	if q := f.RegistryPullQPS; q != nil && *q < 0 {
		r.Refuse("registryPullQPS", "%d: must not be negative", *q)
	}
	if b := f.RegistryBurst; b != nil && *b < 0 {
		r.Refuse("registryBurst", "%d: must not be negative", *b)
	}
	set(&to.QPS, f.RegistryPullQPS)
	set(&to.Burst, f.RegistryBurst)
	r.percent("imageGCHighThresholdPercent", &to.Collect.High, f.ImageGCHighThresholdPercent)
	r.percent("imageGCLowThresholdPercent", &to.Collect.Low, f.ImageGCLowThresholdPercent)
	high, low := cmp.Or(to.Collect.High, image.DefaultHigh), cmp.Or(to.Collect.Low, image.DefaultLow)
	if high <= low && f.ImageGCHighThresholdPercent != nil {
		r.Refuse("imageGCHighThresholdPercent", "%d: must be more than imageGCLowThresholdPercent, %d", high, low)
	} else if high <= low {
		r.Refuse("imageGCLowThresholdPercent", "%d: must be less than imageGCHighThresholdPercent, %d", low, high)
	}
	to.Collect.MinAge = r.duration("imageMinimumGCAge", f.ImageMinimumGCAge, 0, ever)
	to.Collect.MaxAge = r.duration("imageMaximumGCAge", f.ImageMaximumGCAge, 0, ever)
	if l := to.Collect; l.MaxAge > 0 && l.MaxAge <= cmp.Or(l.MinAge, image.DefaultMinAge) {
		r.Refuse("imageMaximumGCAge", "%s: must be more than imageMinimumGCAge, %s", l.MaxAge, cmp.Or(l.MinAge, image.DefaultMinAge))
	}
}

func (r *configReader) percent(field string, to, from *int) {
	if from != nil && (*from < 1 || *from > 100) {
		r.Refuse(field, "%d: must be from 1 to 100", *from)
		return
	}
	set(to, from)
}
