package status

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnDevices is the annotation of the Node with the devices of which the settings make resources.
const AnnDevices = "monopod.devices"

// Device is a device of a resource.
type Device struct {
	Resource string   `json:"resource"`
	Device   string   `json:"device"`            // path, or CDI name
	Missing  bool     `json:"missing,omitempty"` // it is gone, and containers have it
	Holders  []string `json:"holders,omitempty"` // namespace/pod/container of those that have it; namespace/pod: all of its containers have it together
}

// SetDevices records the devices on a Node. Without any there is no annotation.
func SetDevices(n *v1.Node, all []Device) {
	if len(all) == 0 {
		return
	}
	b, _ := json.Marshal(all) // strings
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, AnnDevices, string(b))
}

// DevicesOf returns the devices that a Node has recorded.
func DevicesOf(n *v1.Node) (all []Device) {
	if text, has := n.Annotations[AnnDevices]; has {
		_ = json.Unmarshal([]byte(text), &all) // another version's are not known
	}
	return all
}
