package agent

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"monopod/manifests"
)

// path takes a path, which may be relative to the file that says it.
func (r *configReader) path(to, from *string) {
	if from == nil || *from == "" {
		return
	}
	*to = *from
	if !filepath.IsAbs(*to) {
		*to = filepath.Join(r.dir, *to)
	}
}

// places takes where things are.
func (r *configReader) places() {
	f := &r.file
	r.path(&r.to.Manifests, f.StaticPodPath)
	r.path(&r.to.Root, f.Root)
	r.path(&r.to.PodLogs, f.PodLogsDir)
	r.path(&r.to.Socket, f.Socket)
	set(&r.to.Endpoint, f.ContainerRuntimeEndpoint)
	if e := r.to.Endpoint; f.ContainerRuntimeEndpoint != nil && e != "" && !strings.HasPrefix(strings.TrimPrefix(e, "unix://"), "/") {
		r.Refuse("containerRuntimeEndpoint", "%q: want unix:///path/to/socket", e)
	}
	set(&r.to.Listen, f.Listen)
	if f.Listen != nil && *f.Listen != "" {
		if _, _, err := net.SplitHostPort(*f.Listen); err != nil {
			r.Refuse("listen", "%q is not of the form host:port", *f.Listen)
		}
	}
}

// node takes what the node is called and knows.
func (r *configReader) node() {
	f := &r.file
	set(&r.to.NodeName, f.NodeName)
	if n := r.to.NodeName; f.NodeName != nil && n != "" {
		for _, bad := range validation.IsDNS1123Subdomain(strings.ToLower(strings.TrimSpace(n))) {
			r.Refuse("nodeName", "%q: %s", n, bad)
		}
	}
	if f.PodNameSuffix != nil {
		r.to.NoNameSuffix = !*f.PodNameSuffix
	}
	if v := f.FieldValidation; v != nil && !slices.Contains([]string{"Strict", "Warn", "Ignore"}, *v) {
		r.Refuse("fieldValidation", "%q: choose Strict, Warn or Ignore", *v)
	}
	set(&r.to.Validation, f.FieldValidation)
	for _, key := range slices.Sorted(maps.Keys(f.NodeLabels)) {
		for _, bad := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(f.NodeLabels[key])...) {
			r.Refuse("nodeLabels["+key+"]", "%s=%s: %s", key, f.NodeLabels[key], bad)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(f.RuntimeClasses)) {
		for _, bad := range validation.IsDNS1123Subdomain(class) {
			r.Refuse("runtimeClasses["+class+"]", "the class %q: %s", class, bad)
		}
	}
	if f.NodeLabels != nil {
		r.to.NodeLabels = f.NodeLabels
	}
	if f.RuntimeClasses != nil {
		r.to.RuntimeClasses = f.RuntimeClasses
	}
}

// network takes what pods get as resolv.conf.
func (r *configReader) network() {
	f := &r.file
	r.path(&r.to.ResolvConf, f.ResolvConf)
	r.to.NoResolvConf = r.to.NoResolvConf || f.ResolvConf != nil && *f.ResolvConf == ""
	for k, server := range f.ClusterDNS {
		if _, err := netip.ParseAddr(server); err != nil {
			r.Refuse(fmt.Sprintf("clusterDNS[%d]", k), "%q is no IP address", server)
		}
	}
	if f.ClusterDNS != nil {
		r.to.ClusterDNS = f.ClusterDNS
	}
	set(&r.to.ClusterDomain, f.ClusterDomain)
}

// security takes what pods may do.
func (r *configReader) security() {
	f := &r.file
	set(&r.to.SeccompDefault, f.SeccompDefault)
	for k, name := range f.AllowedUnsafeSysctls {
		if manifests.SysctlNamespace(name) == "" {
			r.Refuse(fmt.Sprintf("allowedUnsafeSysctls[%d]", k), "%q is the whole machine's and cannot be allowed to pods", name)
		}
	}
	if f.AllowedUnsafeSysctls != nil {
		r.to.AllowedUnsafeSysctls = f.AllowedUnsafeSysctls
	}
}

// pulls takes how many images are pulled at once. As with the kubelet, who
// wants them neither serial nor says how many at most wants all at once.
func (r *configReader) pulls() {
	serial, most := r.file.SerializeImagePulls, r.file.MaxParallelImagePulls
	switch {
	case most != nil && *most < 1:
		r.Refuse("maxParallelImagePulls", "%d: must be at least 1", *most)
	case most != nil && *most > 1 && serial != nil && *serial:
		r.Refuse("maxParallelImagePulls", "%d contradicts serializeImagePulls: true", *most)
	case most != nil:
		r.to.ImagePulls = *most
	case serial != nil && *serial:
		r.to.ImagePulls = 1
	case serial != nil:
		r.to.ImagePulls = math.MaxInt32
	}
}

// backOff takes how long crashed containers wait.
func (r *configReader) backOff() {
	b := r.file.CrashLoopBackOff
	if b == nil {
		return
	}
	first := r.duration("crashLoopBackOff.firstContainerRestartPeriod", b.First, 100*time.Millisecond, 5*time.Minute)
	most := r.duration("crashLoopBackOff.maxContainerRestartPeriod", b.Max, time.Second, 5*time.Minute)
	if most := cmp.Or(most, backOffMax); first > most {
		r.Refuse("crashLoopBackOff.firstContainerRestartPeriod", "%s is more than maxContainerRestartPeriod, %s", first, most)
	}
	r.to.BackOff = BackOff{First: cmp.Or(first, r.to.BackOff.First), Max: cmp.Or(most, r.to.BackOff.Max)}
}

// duration returns a duration within bounds, or refuses it; 0: it is not given.
func (r *configReader) duration(field string, d *metav1.Duration, low, high time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if d.Duration < low || d.Duration > high {
		r.Refuse(field, "%s: must be between %s and %s", d.Duration, low, high)
	}
	return d.Duration
}
