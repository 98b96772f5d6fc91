package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
	"monopod/manifests/decode"
	"monopod/manifests/shell"
)

// Read returns the settings: of given flags, else of the file that the flag config names, else the
// defaults. flag returns the text of a flag, and how it is given, such as --root or the name of a
// variable; "": it is not. See ReadFile for the rest.
func Read(flag func(name string) (text, by string)) (c Config, warnings []decode.Problem, err error) {
	c = Default()
	if file, by := flag("config"); by != "" {
		if c, warnings, err = ReadFile(file, c); err != nil && by != "--config" {
			err = fmt.Errorf("%s: %w", by, err)
		}
		if err != nil {
			return c, warnings, err
		}
	}
	for _, r := range rows(&c) {
		if text, by := flag(r.flag); by != "" && r.flag != "" {
			if err := r.parse(by, text); err != nil {
				return c, warnings, err
			}
		}
	}
	c.derive()
	if setting, err := c.checkReserved(); err != nil {
		return c, warnings, fmt.Errorf("%s: %w", setting, err)
	}
	return c, warnings, nil
}

// FlagOf returns the flag of a setting, with its dashes; "" if there is none. The setting is found
// by the last part of its name.
func FlagOf(name string) string {
	for _, r := range rows(new(Config)) {
		if strings.HasSuffix("."+r.name, "."+name) && r.flag != "" {
			return "--" + r.flag
		}
	}
	return ""
}

// derive sets the fields that follow from other settings.
func (c *Config) derive() {
	c.CgroupsPerQOS = c.CgroupDriver != "none"
	c.CgroupRoot = filepath.Join("/", c.CgroupRoot)
	c.SerializePulls = c.ImagePulls == 1
}

// ReadFile returns c with the values of a file of settings, YAML or JSON, and warnings about those
// that have no effect. The error has a line for each problem, with file, line and column, and
// quotes nothing of the file.
func ReadFile(path string, c Config) (Config, []decode.Problem, error) {
	data, err := manifests.ReadFile(path)
	if err != nil {
		return c, nil, fmt.Errorf("read settings: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return c, nil, fmt.Errorf("read settings %s: %w", path, err)
	}
	r := &reader{c: &c, given: map[string]bool{}}
	r.read(path, dir, data)
	r.readers(path)
	for _, check := range []func(){r.driver, r.levels, r.pulls, r.backOff, r.thresholds, r.ages, r.shutdown} {
		check()
	}
	c.derive()
	var warnings []decode.Problem
	var wrong []error
	for _, p := range r.Problems() {
		if p.Warning {
			warnings = append(warnings, p)
		} else {
			wrong = append(wrong, p)
		}
	}
	return c, warnings, errors.Join(wrong...)
}

// reader reads the values of a file into settings.
type reader struct {
	*decode.Settings
	c     *Config
	given map[string]bool // by name: the file has it, and it is valid
}

func (r *reader) read(path, dir string, data []byte) {
	all := rows(r.c)
	fields := decode.Fields{}
	for _, row := range all {
		if row.name != "" {
			put(fields, row.name, row.in())
		}
	}
	unused, absent := unusedFields(), absentFields()
	for _, u := range unused {
		put(fields, u.name, &u.given)
	}
	for _, a := range absent {
		put(fields, a.name, &a.given)
	}
	var version, kind *string
	fields["apiVersion"], fields["kind"] = &version, &kind
	r.Settings = decode.ReadSettings(path, data, fields)
	if kind != nil && *kind != fileKind {
		r.Refuse("kind", "settings are of kind "+fileKind+", or do not say")
	}
	if version != nil && *version != fileVersion {
		r.Refuse("apiVersion", "settings are of "+fileVersion+", or do not say")
	}
	for _, row := range all {
		r.given[row.name] = row.take(dir, func(at string, err error) {
			switch err.(type) {
			case nil:
			case noEffect:
				r.Warn(row.name+at, err.Error())
			default:
				r.Refuse(row.name+at, err.Error())
			}
		})
	}
	r.warnOf(unused)
	r.c.Absent = nil
	for _, a := range absent {
		if a.isRequested() {
			r.c.Absent = append(r.c.Absent, r.Problem(a.name, a.words))
		}
	}
}

// readers refuses a file that others than its owner can open, if it may contain a secret of the
// manifest URL's requests.
func (r *reader) readers(path string) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return
	}
	remedy := fmt.Sprintf("others than its owner can open the file (mode %04o): chmod 600 %s", info.Mode().Perm(), shell.Word(path))
	if r.given["staticPodURLHeader"] && len(r.c.ManifestURLHeader) > 0 {
		r.Refuse("staticPodURLHeader", remedy)
	}
	if u, err := url.Parse(r.c.ManifestURL); r.given["staticPodURL"] && err == nil && u.User != nil {
		r.Refuse("staticPodURL", "it holds a user or password, and "+remedy)
	}
}

// warnOf warns in one line of the fields that have no effect.
func (r *reader) warnOf(all []*unused) {
	all = slices.DeleteFunc(all, func(u *unused) bool { return !u.given.hasValue() })
	if len(all) == 0 {
		return
	}
	text, others := "has no effect here", []string{}
	if first := all[0]; first.instead != "" {
		text += ": see " + first.instead
	}
	for _, u := range all[1:] {
		if u.instead != "" {
			u.name += " (see " + u.instead + ")"
		}
		others = append(others, u.name)
	}
	if len(others) > 0 {
		text += "; nor have " + strings.Join(others, ", ")
	}
	r.Warn(all[0].name, text)
}

// Fields with which the file names its kind, if it does.
const (
	fileVersion = "kubelet.config.k8s.io/v1beta1"
	fileKind    = "KubeletConfiguration"
)

// put sets the value of a name in an object; a dot in the name leads into an object inside.
func put(in decode.Fields, name string, value any) {
	object, rest, inside := strings.Cut(name, ".")
	if !inside {
		in[name] = value
		return
	}
	if in[object] == nil {
		in[object] = decode.Fields{}
	}
	put(in[object].(decode.Fields), rest, value)
}

// What follows are the checks that settings go together, and what follows from one for another.

// driver decides which cgroup driver is used. As with the kubelet one in the file is used only if
// the runtime does not report its own.
func (r *reader) driver() {
	c := r.c
	if c.CgroupDriver == "none" && r.given["cgroupsPerQOS"] && c.CgroupsPerQOS {
		r.Refuse("cgroupsPerQOS", "true contradicts cgroupDriver: none")
	}
	if c.CgroupDriver != "auto" && c.CgroupDriver != "none" {
		c.CgroupDriver, c.FallbackDriver = "auto", c.CgroupDriver
	}
	if !c.CgroupsPerQOS {
		c.CgroupDriver = "none"
	}
}

// levels checks that what is to be enforced is there.
func (r *reader) levels() {
	c := r.c
	for k, level := range c.Enforce {
		name := fmt.Sprintf("enforceNodeAllocatable[%d]", k)
		switch base, isCompressible := strings.CutSuffix(level, Compressible); {
		case level == EnforceNone && len(c.Enforce) > 1:
			r.Refuse(name, "none stands alone")
		case base == EnforceSystem:
			r.reservedLevel(name, base, isCompressible, "systemReserved", c.SystemReserved, c.SystemReservedCgroup)
		case base == EnforceAgent:
			r.reservedLevel(name, base, isCompressible, "kubeReserved", c.KubeReserved, c.KubeReservedCgroup)
		}
	}
	if setting, err := c.checkReserved(); err != nil {
		r.Refuse(setting, err.Error())
	}
}

// reservedLevel checks that processes outside of pods can be held to what is reserved for them, by
// a setting of that name. As in a kubelet CPUs that are listed cannot be enforced.
func (r *reader) reservedLevel(name, level string, isCompressible bool, setting string, amounts v1.ResourceList, cgroup string) {
	c := r.c
	_, hasCPU := amounts[v1.ResourceCPU]
	_, hasMemory := amounts[v1.ResourceMemory]
	_, hasPids := amounts["pid"]
	switch {
	case cgroup == "":
		r.Refuse(name, level+" needs "+setting+"Cgroup, the cgroup whose processes are held to "+setting+", such as /system.slice")
	case c.CgroupDriver == "none":
		r.Refuse(name, level+" needs cgroups, and cgroupDriver is none, or cgroupsPerQOS false")
	case isCompressible && slices.Contains(c.Enforce, level):
		r.Refuse(name, "contradicts "+level+": remove one of them")
	case c.ReservedCPUs != "":
		r.Refuse(name, "contradicts reservedSystemCPUs, which has no amount of cpu to enforce: remove one of them")
	case isCompressible && !hasCPU:
		r.Refuse(name, "needs an amount of cpu in "+setting)
	case !hasCPU && !hasMemory && !hasPids:
		r.Refuse(name, level+" needs an amount of cpu, memory or pid in "+setting)
	}
}

// pulls decides how many images are pulled at a time. As with the kubelet, without serial pulls
// and without a maximum all are pulled at once.
func (r *reader) pulls() {
	c := r.c
	serial, most := r.given["serializeImagePulls"], r.given["maxParallelImagePulls"]
	switch {
	case serial && most && c.SerializePulls && c.ImagePulls > 1:
		r.Refuse("maxParallelImagePulls", "more than one contradicts serializeImagePulls: true")
	case serial && !most && c.SerializePulls:
		c.ImagePulls = 1
	case serial && !most:
		c.ImagePulls = AllPulls
	}
}

func (r *reader) backOff() {
	if c := r.c; c.BackOffFirst > c.BackOffMax && r.given["crashLoopBackOff.firstContainerRestartPeriod"] {
		r.Refuse("crashLoopBackOff.firstContainerRestartPeriod", "must not be more than maxContainerRestartPeriod")
	}
}

func (r *reader) thresholds() {
	switch high, low := r.c.ImageGCHigh, r.c.ImageGCLow; {
	case high > low:
	case r.given["imageGCHighThresholdPercent"]:
		r.Refuse("imageGCHighThresholdPercent", "must be more than imageGCLowThresholdPercent, which is 80 if not given")
	default:
		r.Refuse("imageGCLowThresholdPercent", "must be less than imageGCHighThresholdPercent, which is 85 if not given")
	}
}

func (r *reader) ages() {
	if least, most := r.c.ImageMinAge, r.c.ImageMaxAge; most > 0 && most <= least {
		r.Refuse("imageMaximumGCAge", "must be more than imageMinimumGCAge, which is 2m if not given")
	}
}

// shutdown checks the periods in which pods stop when the machine is shut down.
func (r *reader) shutdown() {
	c := r.c
	if len(c.ShutdownByPriority) > 0 {
		for _, name := range []string{"shutdownGracePeriod", "shutdownGracePeriodCriticalPods"} {
			if r.given[name] && c.ShutdownGrace+c.ShutdownGraceCritical > 0 {
				r.Refuse(name, "contradicts shutdownGracePeriodByPodPriority: give one of them")
			}
		}
	} else if c.ShutdownGraceCritical > c.ShutdownGrace {
		r.Refuse("shutdownGracePeriodCriticalPods", "must not be more than shutdownGracePeriod, of which it is a part")
	}
	seen := map[int32]bool{}
	for k, p := range c.ShutdownByPriority {
		if seen[p.Priority] {
			r.Refuse(fmt.Sprintf("shutdownGracePeriodByPodPriority[%d]", k), "this priority is there twice")
		}
		seen[p.Priority] = true
	}
}
