package config

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"monopod/agent/cpus"
	"monopod/agent/window"
	"monopod/manifests/decode"
)

// What follows are checks. Their errors quote nothing of the value: a file of settings may hold a
// secret at any place, by mistake.

func must(be func(string) bool, words string) func(string) error {
	return func(v string) error {
		if !be(v) {
			return errors.New(words)
		}
		return nil
	}
}

func atLeast[T cmp.Ordered](low T, words string) func(T) error {
	return func(v T) error {
		if v < low {
			return errors.New(words)
		}
		return nil
	}
}

func within[T cmp.Ordered](low, high T, words string) func(T) error {
	return func(v T) error {
		if v < low || v > high {
			return errors.New(words)
		}
		return nil
	}
}

func notZero(q resource.Quantity) error {
	if q.IsZero() {
		return errors.New("must not be zero; a negative size means no rotation")
	}
	return nil
}

func isEndpoint(s string) bool {
	return s == "" || strings.HasPrefix(strings.TrimPrefix(s, "unix://"), "/")
}

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = net.LookupPort("tcp", port) // the names of a few services are accepted
	}
	return s == "" || err == nil
}

// loopback checks the address of healthzPort. A kubelet's may be one that others reach.
func loopback(s string) error {
	ip, err := netip.ParseAddr(s)
	switch {
	case s == "" || err == nil && ip.Unmap().IsLoopback():
		return nil
	case err == nil:
		return noEffect("is no address of the loopback: healthzPort is served on " + defaultHealthz + ", and listen is for others")
	}
	return errors.New("no IP address")
}

// isNodeIP checks the machine's addresses: at most one of each family, which others can reach.
func isNodeIP(s string) error {
	families := map[bool]bool{}
	for _, text := range strings.Split(s, ",") {
		ip, err := netip.ParseAddr(text)
		switch {
		case s == "":
			return nil
		case err != nil:
			return fmt.Errorf("%q is no IP address: write one, or one of each family with a comma between", text)
		case !ip.IsGlobalUnicast():
			return fmt.Errorf("%s is no address at which others reach this machine", text)
		case families[ip.Is4()]:
			return errors.New("more than one address of a family: write one of IPv4, one of IPv6, or both")
		}
		families[ip.Is4()] = true
	}
	return nil
}

func isIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// isDomain reports whether a resolver can search in a domain; "": in none. Case does not matter to it.
func isDomain(s string) bool {
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	return s == "" || len(validation.IsDNS1123SubdomainWithUnderscore(name)) == 0
}

func isOfPods(sysctl string) bool { return decode.SysctlNamespace(sysctl) != "" }

// first makes an error of apimachinery's findings on a value, in words of its own.
func first(bad []string) error {
	if len(bad) == 0 {
		return nil
	}
	return errors.New(bad[0])
}

func nodeName(name string) error {
	if name == "" {
		return nil
	}
	return first(validation.IsDNS1123Subdomain(strings.ToLower(strings.TrimSpace(name))))
}

func label(key, value string) error {
	return first(append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...))
}

func runtimeClass(class, _ string) error {
	return first(validation.IsDNS1123Subdomain(class))
}

func cipher(name string) error {
	all := tls.CipherSuites()
	if !slices.ContainsFunc(all, func(c *tls.CipherSuite) bool { return c.Name == name }) {
		return fmt.Errorf("none of the ciphers that are safe, such as %s", all[len(all)-1].Name)
	}
	return nil
}

// The levels of enforceNodeAllocatable, of which those of processes outside of pods may be limited
// to what is compressible.
const (
	EnforcePods   = "pods"
	EnforceSystem = "system-reserved"
	EnforceAgent  = "kube-reserved"
	EnforceNone   = "none"

	Compressible = "-compressible"
)

// level checks a level of enforceNodeAllocatable.
func level(name string) error {
	switch strings.TrimSuffix(name, Compressible) {
	case EnforceSystem, EnforceAgent:
		return nil
	}
	if name == EnforcePods || name == EnforceNone {
		return nil
	}
	return errors.New("choose pods, system-reserved, kube-reserved, one of the latter two with -compressible, or none")
}

func reservation(name v1.ResourceName, q resource.Quantity) error {
	if !slices.Contains([]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, "pid"}, name) {
		return errors.New("only cpu, memory, ephemeral-storage and pid can be reserved")
	}
	if q.Sign() < 0 {
		return errors.New("must not be negative")
	}
	return nil
}

// threshold checks a signal of evictionHard and how much of it to keep free.
func threshold(signal, text string) error {
	used := []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available"}
	others := []string{"containerfs.available", "containerfs.inodesFree", "allocatableMemory.available"}
	if !slices.Contains(slices.Concat(used, others), signal) {
		return errors.New("there is no such signal: choose memory.available or nodefs.available")
	}
	if _, _, err := Threshold(text); err != nil {
		return err
	}
	if slices.Contains(others, signal) {
		return noEffect("has no effect here")
	}
	return nil
}

// Threshold reads a threshold of evictionHard: an amount, or else a share of the total, from 0 to
// 1. For 0% and 100%, which mean none to the kubelet, both are 0.
func Threshold(text string) (amount resource.Quantity, share float64, err error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil || !(percent >= 0 && percent <= 100):
			return amount, 0, errors.New("must be between 0% and 100%")
		case percent == 100:
			return amount, 0, nil
		}
		return amount, percent / 100, nil
	}
	if amount, err = resource.ParseQuantity(text); err != nil || amount.Sign() <= 0 {
		return amount, 0, errors.New("must be a quantity above 0 such as 100Mi, or a percentage such as 10%")
	}
	return amount, 0, nil
}

func shutdownPriority(p ShutdownPriority) error {
	if p.Seconds < 0 || p.Seconds > 24*60*60 {
		return errors.New("shutdownGracePeriodSeconds must be from 0 to 86400")
	}
	return nil
}

func isWindows(text string) error {
	_, err := window.Parse(text)
	return err
}

// cpuOption checks an option of the static CPU policy. Its errors quote nothing.
func cpuOption(name, value string) error {
	if cpus.CheckOption(name, "true") != nil {
		return errors.New("no option of the static policy")
	}
	if cpus.CheckOption(name, value) != nil {
		return errors.New("want \"true\" or \"false\"")
	}
	return nil
}

func isCPUs(text string) bool {
	_, err := cpus.Parse(text)
	return err == nil
}
