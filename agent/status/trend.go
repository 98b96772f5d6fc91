package status

// Trend is what a pod uses, and has used in the last hour.
type Trend struct {
	UID    string  `json:"uid"`
	CPU    *uint64 `json:"cpu,omitempty"`    // billionths of a core of late; nil: not known yet
	Memory *uint64 `json:"memory,omitempty"` // bytes that are not easily freed; nil: not known
	Points []Point `json:"points"`           // a minute apart, the oldest first
}

// Point is what a pod used at one time.
type Point struct {
	CPU    uint32 `json:"cpu"`    // thousandths of a core, over the time since the point before
	Memory uint32 `json:"memory"` // KiB that are not easily freed
}
