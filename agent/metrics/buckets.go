package metrics

import "github.com/prometheus/client_golang/prometheus"

// Upper bounds of histograms, in seconds. All but toRunning are the kubelet's:
// quantiles of both can be put into one graph only if the buckets are the same.
var (
	usual      = prometheus.DefBuckets
	starting   = []float64{.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
	pulling    = []float64{1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
	mounting   = []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}
	operations = prometheus.ExponentialBuckets(.005, 2.5, 14)
	toRunning  = []float64{.1, .25, .5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600}
)

// perPod are upper bounds of a number of containers.
var perPod = []float64{1, 2, 4, 8, 16}
