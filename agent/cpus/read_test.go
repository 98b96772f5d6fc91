package cpus

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// sys is a folder such as /sys/devices/system.
type sys struct {
	t   *testing.T
	dir string
}

func (s sys) write(text, format string, parts ...any) {
	s.t.Helper()
	path := filepath.Join(s.dir, fmt.Sprintf(format, parts...))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s sys) cpu(id, socket, coreID int) {
	s.write(fmt.Sprint(socket), "cpu/cpu%d/topology/physical_package_id", id)
	s.write(fmt.Sprint(coreID), "cpu/cpu%d/topology/core_id", id)
}

func (s sys) node(node, id int) { s.write("", "node/node%d/cpu%d", node, id) }

func (s sys) cache(id, index, level, cache int, shared string) {
	s.write(fmt.Sprint(level), "cpu/cpu%d/cache/index%d/level", id, index)
	s.write(fmt.Sprint(cache), "cpu/cpu%d/cache/index%d/id", id, index)
	s.write(shared, "cpu/cpu%d/cache/index%d/shared_cpu_map", id, index)
}

func TestTheMachineIsAsLinuxDescribesIt(t *testing.T) {
	for _, row := range []struct {
		name string
		make func(s sys)
		want []CPU
	}{
		{"two threads are a core, named by the lower number", func(s sys) {
			for id := range 4 {
				s.cpu(id, 0, id%2)
				s.node(0, id)
			}
		}, []CPU{{ID: 0}, {ID: 1, Core: 1}, {ID: 2}, {ID: 3, Core: 1}}},
		{"a CPU that is offline does not count", func(s sys) {
			s.write("0,2-3", "cpu/online")
			for id := range 4 {
				s.cpu(id, 0, id%2)
			}
		}, []CPU{{ID: 0}, {ID: 2}, {ID: 3, Core: 3}}},
		{"core ids repeat per socket", func(s sys) {
			s.cpu(0, 0, 0)
			s.cpu(1, 1, 0)
			s.node(0, 0)
			s.node(1, 1)
		}, []CPU{{ID: 0}, {ID: 1, Core: 1, Socket: 1, NUMA: 1, Uncore: 1}}},
		{"without NUMA nodes the sockets are", func(s sys) {
			s.cpu(0, 0, 0)
			s.cpu(1, 1, 0)
		}, []CPU{{ID: 0}, {ID: 1, Core: 1, Socket: 1, NUMA: 1, Uncore: 1}}},
		{"a cache of some cores of a node is shared", func(s sys) {
			for id, shared := range []string{"3", "3", "c", "0,0000000c"} {
				s.cpu(id, 0, id)
				s.node(0, id)
				s.cache(id, 2, 2, id, "1")
				s.cache(id, 3, 3, 7+id/2, shared)
			}
		}, []CPU{{ID: 0, Uncore: 7}, {ID: 1, Core: 1, Uncore: 7}, {ID: 2, Core: 2, Uncore: 8}, {ID: 3, Core: 3, Uncore: 8}}},
		{"a CPU without a core, a socket or a node does not count", func(s sys) {
			s.cpu(0, 0, 0)
			s.write("0", "cpu/cpu1/topology/physical_package_id")
			s.write("0", "cpu/cpu2/topology/core_id")
			s.cpu(3, 0, 3)
			for id := range 3 {
				s.node(0, id)
			}
		}, []CPU{{ID: 0}}},
		{"a list of what is online that says nothing", func(s sys) {
			s.write("some", "cpu/online")
			s.cpu(0, 0, 0)
		}, []CPU{{ID: 0}}},
		{"core ids repeat per node of a socket", func(s sys) {
			for id := range 2 {
				s.cpu(id, 0, 0)
				s.node(id, id)
			}
		}, []CPU{{ID: 0}, {ID: 1, Core: 1, NUMA: 1}}},
		{"core ids repeat per socket of a node", func(s sys) {
			for id := range 2 {
				s.cpu(id, id, 0)
				s.node(0, id)
			}
		}, []CPU{{ID: 0}, {ID: 1, Core: 1, Socket: 1, Uncore: 1}}},
		{"a cache without an id is none", func(s sys) {
			for id := range 2 {
				s.cpu(id, 0, id)
				s.node(0, id)
				s.write("3", "cpu/cpu%d/cache/index3/level", id)
				s.write("1", "cpu/cpu%d/cache/index3/shared_cpu_map", id)
			}
			s.write("5", "cpu/cpu0/cache/index3/id")
		}, []CPU{{ID: 0}, {ID: 1, Core: 1}}},
		{"a cache of each node is none", func(s sys) {
			for id, shared := range []string{"3", "3", "c", "0,0000000c"} {
				s.cpu(id, 0, id)
				s.node(id/2, id)
				s.cache(id, 3, 3, 5+id/2, shared)
			}
		}, []CPU{{ID: 0}, {ID: 1, Core: 1}, {ID: 2, Core: 2, NUMA: 1}, {ID: 3, Core: 3, NUMA: 1}}},
		{"a cache of all threads of a node is none", func(s sys) {
			for id := range 4 {
				s.cpu(id, 0, id%2)
				s.node(0, id)
				s.cache(id, 3, 3, 5, "f")
			}
		}, []CPU{{ID: 0}, {ID: 1, Core: 1}, {ID: 2}, {ID: 3, Core: 1}}},
		{"a cache of the whole node is none", func(s sys) {
			for id := range 2 {
				s.cpu(id, 0, id)
				s.node(0, id)
				s.cache(id, 3, 3, 5, "3")
			}
		}, []CPU{{ID: 0}, {ID: 1, Core: 1}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := sys{t, t.TempDir()}
			row.make(s)
			m, err := Read(s.dir)
			if err != nil || !reflect.DeepEqual(m.cpus, row.want) {
				t.Errorf("%v, error %v", m, err)
			}
		})
	}
}

func TestAMachineWithoutDescriptionIsAnError(t *testing.T) {
	if m, err := Read(t.TempDir()); err == nil {
		t.Errorf("read %v", m)
	}
}

func TestListsOfCPUs(t *testing.T) {
	for _, row := range []struct{ text, want, err string }{
		{"", "", ""},
		{"3,1-2,2", "1-3", ""},
		{"0,2,4-5", "0,2,4-5", ""},
		{"1-", "", `strconv.Atoi: parsing "": invalid syntax`},
		{"3-1", "", `invalid range "3-1" (3 > 1)`},
		{"0-99999999999", "", `invalid range "0-99999999999" (0 > 65536)`},
		{"a", "", `strconv.Atoi: parsing "a": invalid syntax`},
	} {
		s, err := Parse(row.text)
		if text := fmt.Sprint(err); s.String() != row.want || row.err != "" && text != row.err || row.err == "" && err != nil {
			t.Errorf("%q: %q, error %v", row.text, s, err)
		}
	}
}
