package oom

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	podUID = "2b8453bbdf3f59899ae7bb6a84e51d5a"
	first  = "83a7d985a38656cbd70211f7f7004158daf2a741e1c33137424bf0858ac5dd25"
	second = "5c1f0d3a97b64e2287cb40d1be6f9a083e7d6b15c4a2984f10de73b6a95c8e21"
)

// readAll returns the kills of a log.
func readAll(log string) (all []Kill) {
	var r report
	for line := range strings.Lines(log) {
		if k, is := r.add(line); is {
			all = append(all, k)
		}
	}
	return all
}

func TestLogsOfKernels(t *testing.T) {
	const slice = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + podUID + ".slice/cri-containerd-" + first + ".scope"
	for _, row := range []struct {
		file, id, words string
		want            Kill
	}{
		{"linux-6.18-v1-pod.kmsg", first, "the kernel killed its process tail: the pod used 24 MiB of its memory limit of 24 MiB",
			Kill{Process: "tail", PID: 16138, Cgroup: "/kubepods/burstable/pod" + podUID + "/" + first, Limit: "/kubepods/burstable/pod" + podUID,
				Used: 24 << 20, Most: 24 << 20, Resident: (23040 + 1264) << 10}},
		{"linux-6.1-v2-group.kmsg", first, "the kernel killed its process mysqld: the container used 512 MiB of its memory limit of 512 MiB",
			Kill{Process: "mysqld", PID: 5205, Cgroup: slice, Limit: slice, Used: 512 << 20, Most: 512 << 20, Resident: (521000 + 36352) << 10}},
		{"linux-5.15-machine.kmsg", second, "the kernel killed its process node: the machine ran out of memory, and the process used 1627.5 MiB",
			Kill{Process: "node", PID: 20921, Cgroup: "/kubepods.slice/kubepods-pod" + podUID + ".slice/crio-" + second + ".scope", Resident: 1666560 << 10}},
	} {
		log, err := os.ReadFile(filepath.Join("testdata", row.file))
		if err != nil {
			t.Fatal(err)
		}
		got := readAll(string(log))
		if len(got) != 1 || got[0] != row.want {
			t.Errorf("%s: %+v, want %+v", row.file, got, row.want)
			continue
		}
		if !got[0].In(row.id) || got[0].In(strings.Repeat("0", 64)) || got[0].In("") {
			t.Errorf("%s: it is of another container", row.file)
		}
		if words := got[0].Words(podUID, row.id); words != row.words {
			t.Errorf("%s: %s, want %s", row.file, words, row.words)
		}
	}
}

// The kernel works on one kill at a time. What is not certain to be of the same one is not combined.
func TestWhatIsCombined(t *testing.T) {
	const (
		chosen  = "6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/a/b,task=x,pid=7,uid=0\n"
		usage   = "6,1,1,-;memory: usage 8kB, limit 8kB, failcnt 1\n"
		invoked = "4,1,1,-;y invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999\n"
		killed  = "3,1,1,-;Memory cgroup out of memory: Killed process 7 (x) total-vm:9kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB, UID:0\n"
	)
	machine := strings.Replace(chosen, "oom_memcg=/a", "global_oom", 1)
	killed0 := strings.Replace(killed, "process 7 ", "process 0 ", 1)
	for _, row := range []struct{ name, log, want string }{
		{"all of it", invoked + usage + chosen + killed, "/a/b 8192 4096"},
		{"without its beginning", chosen + killed, "/a/b 0 4096"},
		{"the process ends by itself", invoked + usage + chosen, ""},
		{"another one is killed", chosen + strings.Replace(killed, "process 7 ", "process 77 ", 1), ""},
		{"the record of one is cut", chosen + "3,1,1,-;Memory cgroup out of memory: Killed process 7 (x) total-vm:9kB, ano\n", "/a/b 0 0"},
		{"the next one's process is the same, and its choice was left out", chosen + invoked + killed, ""},
		{"it is logged twice", chosen + killed + killed, "/a/b 0 4096"},
		{"the record of the choice is cut before the process", "6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/a/b\n" + killed0, ""},
		{"the record of the choice is cut in the process", "6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/a/b,task=x,pid=,uid=0\n" + killed0, ""},
		{"a choice of no cgroup", "6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,task=x,pid=7,uid=0\n" + killed, ""},
		{"no choice is logged", invoked + usage + killed, ""},
		{"the memory of a limit reached before", usage + invoked + chosen + killed, "/a/b 0 4096"},
		{"the memory of a limit, where the machine's was reached", usage + machine + killed, "/a/b 0 4096"},
		{"a process says that it was killed", chosen + "14" + killed[1:], ""},
		{"a process says what its limit is", "14" + usage[1:] + chosen + killed, "/a/b 0 4096"},
		{"an older kernel's", "6,1,1,-;Task in /a/b killed as a result of limit of /a\n" + usage + "3,1,1,-;Killed process 7 (x) total-vm:9kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB\n", ""},
		{"the process that needs memory is the one to be killed", chosen + strings.Replace(killed, "Memory cgroup out of memory", "Out of memory (oom_kill_allocating_task)", 1), "/a/b 0 4096"},
		{"an amount that is none", invoked + "6,1,1,-;memory: usage -8kB, limit 8kB\n" + chosen + killed, "/a/b 0 4096"},
	} {
		var got []string
		for _, k := range readAll(row.log) {
			got = append(got, k.Cgroup+" "+number(k.Used)+" "+number(k.Resident))
		}
		if text := strings.Join(got, "|"); text != row.want {
			t.Errorf("%s: %s, want %s", row.name, text, row.want)
		}
	}
}

// A container names its programs and their files as it likes, and the kernel logs the names of those
// that crash, the file's without its folder.
func TestAProgramThatCrashesIsNoKill(t *testing.T) {
	const (
		chosen = "6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/a/b,task=x,pid=7,uid=0\n"
		killed = "3,1,1,-;Memory cgroup out of memory: Killed process 7 (x) total-vm:9kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB, UID:0\n"
	)
	crash := func(name, file string) string {
		return "6,1,1,-;" + name + "[77]: segfault at 0 ip 0000000000401000 sp 00007ffc95a1f2c0 error 4 in " + file + "[401000+1000]\n"
	}
	for _, row := range []struct{ name, log, want string }{
		{"one as if a process was chosen, one as if it was killed",
			crash("oom-kill:", ",task_memcg="+first+",task=x,pid=7,uid=0") + crash("x", "emory: Killed process 7 (x) total-vm:9kB"), ""},
		{"one as if all of them were chosen", crash("oom-kill:constr", ",task_memcg="+first+",task=x,pid=7,uid=0") + killed, ""},
		{"before the process was killed, as if it was", chosen + crash("Out of memory: ", "y: Killed process 7 (x) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB") + killed, "/a/b 4096"},
		{"before the process was killed, as if the next one began", chosen + crash("x", "x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL)") + killed, "/a/b 4096"},
	} {
		var got []string
		for _, k := range readAll(row.log) {
			got = append(got, k.Cgroup+" "+number(k.Resident))
		}
		if text := strings.Join(got, "|"); text != row.want {
			t.Errorf("%s: %s, want %s", row.name, text, row.want)
		}
	}
}

// The program that needs memory may have any name, of which the kernel logs what does not print in
// four bytes each.
func TestTheNextKillBeginsWithAnyName(t *testing.T) {
	for name, want := range map[string]bool{"x": true, "": true, strings.Repeat("y", 15): true, strings.Repeat("y", 16): false,
		strings.Repeat(`\x0a`, 15): true, strings.Repeat(`\x0a`, 15) + "y": false, `\x5cx\x5cx\x5cx`: true, "invoked oom-kil": true} {
		if got := isInvoked(name + " invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999"); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

func TestNamesOfProcessesAreTheirOwn(t *testing.T) {
	for _, name := range []string{"a b", "a) total-vm:1", "(x)", "x (y) z", `a\x0ab`, "x,pid=1,uid=0", ",task=", "", "7 (x) total-vm"} {
		log := "6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/a/b,task=" + name + ",pid=7,uid=0\n" +
			"3,1,1,-;Memory cgroup out of memory: Killed process 7 (" + name + ") total-vm:9kB, anon-rss:4kB, file-rss:2kB, shmem-rss:0kB, UID:0\n"
		got := readAll(log)
		want := Kill{Process: name, PID: 7, Cgroup: "/a/b", Limit: "/a", Resident: 6 << 10}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q: %+v, want %+v", name, got, want)
		}
	}
}

func TestWhoseLimitWasReached(t *testing.T) {
	at := "/kubepods/burstable/pod" + podUID + "/" + first
	for limit, want := range map[string]string{
		at:                                   "the container",
		at + "/own":                          "a cgroup in the container",
		"/kubepods/burstable/pod" + podUID:   "the pod",
		"/kubepods":                          "the cgroup /kubepods",
		"/kubepods/burstable/pod" + second:   "the cgroup /kubepods/burstable/pod" + second,
		"/machine/pod" + podUID + "/x/y":     "the cgroup /machine/pod" + podUID + "/x/y",
		"/elsewhere/" + "pod" + podUID + "/": "the cgroup /elsewhere/pod" + podUID + "/",
	} {
		if got := (Kill{Cgroup: at, Limit: limit}).whose(podUID, first); got != want {
			t.Errorf("%s: %s, want %s", limit, got, want)
		}
	}
}

func TestWhichCgroupsAreOfAPod(t *testing.T) {
	const uid = "63816e76-ac39-dee5-92e6-755d55eed460"
	for cgroup, want := range map[string]bool{"pod" + uid: true, "kubepods-pod63816e76_ac39_dee5_92e6_755d55eed460.slice": true, "pod" + podUID: false} {
		if got := IsOfPod(cgroup, uid); got != want {
			t.Errorf("%s: %v, want %v", cgroup, got, want)
		}
	}
	if IsOfPod("pod"+uid, "") {
		t.Error("it is of a pod without a uid")
	}
}

func TestAmounts(t *testing.T) {
	for n, want := range map[int64]string{1 << 10: "1 KiB", 1 << 20: "1 MiB", 3 << 19: "1.5 MiB", 1<<20 - 1: "1023 KiB"} {
		if got := amount(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestALimitThatIsNotKnown(t *testing.T) {
	k := Kill{Process: "x", Cgroup: "/a/c1", Limit: "/a/c1", Resident: 5 << 20}
	if got, want := k.Words("u", "c1"), "the kernel killed its process x: the container reached its memory limit, and the process used 5 MiB"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	k.Resident = 0
	if got, want := k.Words("u", "c1"), "the kernel killed its process x: the container reached its memory limit"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func FuzzReport(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.kmsg")
	for _, file := range files {
		log, _ := os.ReadFile(file)
		f.Add(log)
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		for _, k := range readAll(string(log)) {
			if k.Used < 0 || k.Most < 0 || k.Resident < 0 || !bytes.Contains(log, []byte(k.Cgroup)) {
				t.Errorf("%+v", k)
			}
		}
	})
}
