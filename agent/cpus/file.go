package cpus

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
)

// file is the content of a kubelet's cpu_manager_state.
type file struct {
	PolicyName    string                       `json:"policyName"`
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"`
	Checksum      uint32                       `json:"checksum"`
}

// Text returns the table as a kubelet writes it.
func (t *Table) Text() string {
	f := file{PolicyName: t.policy.name(), DefaultCPUSet: t.shared.String(), Entries: map[string]map[string]string{}}
	for uid, all := range t.own {
		f.Entries[uid] = map[string]string{}
		for container, own := range all {
			f.Entries[uid][container] = own.String()
		}
	}
	f.Checksum = f.sum()
	b, _ := json.Marshal(f) // strings and maps of strings
	return string(b)
}

func (p *Policy) name() string {
	if p.isStatic {
		return Static
	}
	return None
}

// sum returns the checksum of a kubelet: of how its debugger prints the structure.
func (f *file) sum() uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "(*state.CPUManagerCheckpoint){PolicyName:(string)%s DefaultCPUSet:(string)%s Entries:(map[string]map[string]string)map[%s] Checksum:(checksum.Checksum)0}",
		f.PolicyName, f.DefaultCPUSet, dump(f.Entries, func(all map[string]string) string {
			return "map[" + dump(all, func(s string) string { return s }) + "]"
		}))
	return h.Sum32()
}

func dump[V any](all map[string]V, show func(V) string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, key+":"+show(all[key]))
	}
	return strings.Join(parts, " ")
}

// Restore returns the table that a file says. Its errors are a kubelet's: the file is damaged, of
// another policy, or not of this machine and these settings.
func (p *Policy) Restore(text []byte) (*Table, error) {
	f, err := parseFile(text)
	if err != nil {
		return nil, err
	}
	if f.PolicyName != p.name() {
		return nil, fmt.Errorf("configured policy %q differs from state checkpoint policy %q", p.name(), f.PolicyName)
	}
	t := &Table{policy: p, own: map[string]map[string]Set{}}
	if err := t.read(f); err != nil {
		return nil, err
	}
	if !p.isStatic {
		return t, nil
	}
	if len(t.shared) == 0 && len(t.own) == 0 {
		return NewTable(p), nil
	}
	if err := t.check(); err != nil {
		return nil, &Mismatch{err.Error()}
	}
	return t, nil
}

// Mismatch reports a file that is not of this machine and these settings.
type Mismatch struct{ text string }

func (m *Mismatch) Error() string { return m.text }

// parseFile reads the file. What is no such file may be one of the oldest format, whose entries are
// by the id of the container: nothing here wrote those.
func parseFile(text []byte) (*file, error) {
	f, err := parseNew(text)
	if err == nil {
		return f, nil
	}
	var old struct {
		Entries  map[string]string `json:"entries"`
		Checksum uint32            `json:"checksum"`
	}
	if err := json.Unmarshal(text, &old); err != nil {
		return nil, err
	}
	if old.Checksum != 0 || len(old.Entries) == 0 {
		return nil, err
	}
	id := slices.Min(slices.Collect(maps.Keys(old.Entries)))
	return nil, fmt.Errorf("failed to migrate checkpoint from v1 to v2: containerID '%s' not found in initial containers list", id)
}

func parseNew(text []byte) (*file, error) {
	f := &file{}
	if err := json.Unmarshal(text, f); err != nil {
		return nil, err
	}
	if f.Checksum != 0 && f.Checksum != f.sum() {
		return nil, fmt.Errorf("checkpoint is corrupted")
	}
	return f, nil
}

func (t *Table) read(f *file) (err error) {
	t.shared, err = Parse(f.DefaultCPUSet)
	if err != nil {
		return fmt.Errorf("could not parse default cpu set %q: %w", f.DefaultCPUSet, err)
	}
	for _, uid := range slices.Sorted(maps.Keys(f.Entries)) {
		t.own[uid] = map[string]Set{}
		for _, container := range slices.Sorted(maps.Keys(f.Entries[uid])) {
			text := f.Entries[uid][container]
			t.own[uid][container], err = Parse(text)
			if err != nil {
				return fmt.Errorf("could not parse cpuset %q for container %q in pod %q: %w", text, container, uid, err)
			}
		}
	}
	return nil
}

// check compares a table that was read with the machine and the settings.
func (t *Table) check() error {
	p, all := t.policy, t.shared
	// A kubelet does not start with its own file once all CPUs that are not reserved are assigned.
	if len(t.shared) == 0 && (!p.o.strict || len(t.own) == 0) {
		return fmt.Errorf("default cpuset cannot be empty")
	}
	if both := p.reserved.And(t.shared); p.o.strict && len(both) > 0 {
		return fmt.Errorf("some of strictly reserved cpus: %q are present in defaultCpuSet: %q", both, t.shared)
	}
	if !p.o.strict && len(p.reserved.Minus(t.shared)) > 0 {
		return fmt.Errorf("not all reserved cpus: %q are present in defaultCpuSet: %q", p.reserved, t.shared)
	}
	for _, uid := range slices.Sorted(maps.Keys(t.own)) {
		for _, container := range slices.Sorted(maps.Keys(t.own[uid])) {
			own := t.own[uid][container]
			if len(own.And(t.shared)) > 0 {
				return fmt.Errorf("pod: %s, container: %s cpuset: %q overlaps with default cpuset %q", uid, container, own, t.shared)
			}
			all = all.Or(own)
		}
	}
	if !all.Equal(p.usable()) {
		return fmt.Errorf("current set of available CPUs %q doesn't match with CPUs in state %q", p.usable(), all)
	}
	return nil
}
