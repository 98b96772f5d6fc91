package main

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestOnlyCountsThatGrewFail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "last.json")
	measured := func(fsyncs, calls, ms float64) *sheet {
		s := &sheet{}
		s.count("fsyncs for a start", "fsyncs", 10, fsyncs)
		s.count("calls for a start", "calls", 10, calls)
		s.own("a start", "ms", 10, ms)
		return s
	}
	if err := measured(4, 10, 20).writeJSON(path); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		now  *sheet
		want []string
	}{
		{"the same", measured(4, 10, 20), nil},
		{"a time", measured(4, 10, 90), nil},
		{"fewer", measured(1, 1, 20), nil},
		{"somewhat more", measured(5, 12, 20), nil},
		{"more", measured(6, 12, 20), []string{"fsyncs for a start: 6.0 fsyncs, 4.0 at the last measurement"}},
	} {
		got, err := row.now.grown(path)
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, %v", row.name, got, err)
		}
	}
	if got, err := measured(9, 9, 9).grown(path + ".missing"); err != nil || got != nil {
		t.Errorf("no earlier measurement: %q, %v", got, err)
	}
}

func TestATraceIsCounted(t *testing.T) {
	const lines = `strace: Process 7 attached with 2 threads
1763839999.000000 close(3) = 0
[pid     8] 1763840000.100000 openat(AT_FDCWD, ""..., O_RDONLY <unfinished ...>
1763840000.101000 futex(0x1, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>
[pid     8] 1763840000.102000 <... openat resumed>) = 3
[pid     8] 1763840000.103000 fsync(3) = 0
[pid     8] 1763840000.104000 --- SIGURG {si_signo=SIGURG} ---
[pid     8] 1763840005.000000 write(3, ""..., 5) = 5
`
	got := readTrace(lines, time.Unix(1763840000, 0))
	if want := (traced{calls: 3, syncs: 1, wakes: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
