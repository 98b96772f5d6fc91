package diff

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/cli/client"
	"monopod/agent/config"
	"monopod/agent/status"
	"monopod/agent/window"
)

// Settings returns cfg with what the agent goes by when it makes pods of manifests: the
// node's name, unless cfg has one, and with all also the rest. Where no agent answers, its
// pods tell the node, and whether it is in their names.
func Settings(ctx context.Context, k *client.Known, socket string, cfg config.Config, all bool) config.Config {
	var answer struct {
		Settings struct {
			NodeName       string
			Root           string
			PodNameSuffix  bool
			Validation     string `json:"fieldValidation"`
			RuntimeClasses map[string]string
			UpdatePolicy   string
			UpdateHealth   metav1.Duration
			UpdateStable   metav1.Duration
			UpdateWindow   string
		} `json:"kubeletconfig"`
	}
	s := &answer.Settings
	if k.Down() || client.GetJSON(ctx, socket, "/configz", &answer) != nil || s.NodeName == "" {
		s.Validation, s.RuntimeClasses, s.UpdatePolicy, s.UpdateWindow = cfg.Validation, cfg.RuntimeClasses, cfg.UpdatePolicy, cfg.UpdateWindow
		s.NodeName, s.PodNameSuffix = nodeOf(k.Pods)
		s.UpdateHealth.Duration, s.UpdateStable.Duration = cfg.UpdateHealth, cfg.UpdateStable
	}
	cfg.NodeName = cmp.Or(cfg.NodeName, s.NodeName)
	if all {
		cfg.Root = cmp.Or(s.Root, cfg.Root)
		cfg.UpdateHealth = s.UpdateHealth.Duration
		cfg.UpdateStable = cmp.Or(s.UpdateStable.Duration, cfg.UpdateStable)
		cfg.PodNameSuffix, cfg.Validation, cfg.RuntimeClasses = s.PodNameSuffix, s.Validation, s.RuntimeClasses
		cfg.UpdatePolicy, cfg.UpdateWindow = s.UpdatePolicy, s.UpdateWindow
	}
	return cfg
}

// Gate is what keeps the agent now from changing any pod, in words; "": nothing.
type Gate struct {
	Node   string // the hold of the node
	Window string // the update window, which is closed
}

// GateOf returns what keeps the agent now from changing any pod, by the update window of cfg.
func GateOf(ctx context.Context, k *client.Known, socket string, cfg config.Config, now time.Time) (g Gate) {
	windows, _ := window.Parse(cfg.UpdateWindow) // settings were checked where they were read
	g.Window = windows.Closed(now)
	held := k.NodeHeld
	var node v1.Node
	if !k.Down() && client.GetJSON(ctx, socket, "/node", &node) == nil {
		held = node.Annotations[status.AnnHeld]
	}
	if held != "" {
		g.Node = "the node is " + held
	}
	return g
}

// nodeOf returns the node of pods, and whether their names end with it.
func nodeOf(pods []v1.Pod) (node string, suffix bool) {
	for i := range pods {
		if node = pods[i].Spec.NodeName; !strings.HasSuffix(pods[i].Name, "-"+strings.ToLower(node)) {
			return node, false
		}
	}
	return node, true
}

// Folders returns those arguments that are folders.
func Folders(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		info, err := os.Stat(arg)
		return err != nil || !info.IsDir()
	})
}

// Same reports whether two paths lead to one folder.
func Same(a, b string) bool {
	x, err := os.Stat(a)
	y, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(x, y)
}
