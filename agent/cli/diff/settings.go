package diff

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/config"
)

// Settings returns cfg with the agent's settings for making pods of manifests: the node's name,
// unless cfg has one, and with all also the others. If no agent answers, the node, and whether it
// is in their names, is taken from its pods.
func Settings(ctx context.Context, k *client.Known, socket string, cfg config.Config, all bool) config.Config {
	var answer struct {
		Settings struct {
			NodeName       string
			PodNameSuffix  bool
			Validation     string `json:"fieldValidation"`
			RuntimeClasses map[string]string
		} `json:"kubeletconfig"`
	}
	s := &answer.Settings
	if k.Down() || client.GetJSON(ctx, socket, "/configz", &answer) != nil || s.NodeName == "" {
		s.Validation, s.RuntimeClasses = cfg.Validation, cfg.RuntimeClasses
		s.NodeName, s.PodNameSuffix = nodeOf(k.Pods)
	}
	cfg.NodeName = cmp.Or(cfg.NodeName, s.NodeName)
	if all {
		cfg.PodNameSuffix, cfg.Validation, cfg.RuntimeClasses = s.PodNameSuffix, s.Validation, s.RuntimeClasses
	}
	return cfg
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

// Folders returns the arguments that are folders.
func Folders(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		info, err := os.Stat(arg)
		return err != nil || !info.IsDir()
	})
}

// WithOthers returns the arguments with all folders of the agent, in their order, in place of those
// of them that they name, and whether they name one.
func WithOthers(args, own []string) (all []string, isOwn bool) {
	isOne := func(arg string) bool {
		return slices.ContainsFunc(own, func(dir string) bool { return Same(arg, dir) })
	}
	if !slices.ContainsFunc(Folders(args), isOne) {
		return args, false
	}
	if len(own) == 1 {
		return args, true
	}
	return append(slices.DeleteFunc(slices.Clone(args), isOne), own...), true
}

// Same reports whether two paths lead to one folder.
func Same(a, b string) bool {
	x, err := os.Stat(a)
	y, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(x, y)
}
