package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
)

// ociRuntime writes a program that says of itself what an OCI runtime does.
func (p *patient) ociRuntime(says string) string {
	path := p.write("oci", "#!/bin/sh\n[ \"$1\" = --version ] && echo '"+says+"'\n")
	if err := os.Chmod(path, 0o700); err != nil {
		p.Fatal(err)
	}
	return path
}

func TestWhatCRIOLacksIsTold(t *testing.T) {
	const events, old = "sends no container events", "which runs nothing"
	for _, row := range []struct {
		name    string
		version string
		events  bool
		oci     string
		tells   []string
	}{
		{"nothing", "1.36.3", true, "crun version 1.27", nil},
		{"no events", "1.36.3", false, "crun version 1.27", []string{events}},
		{"an old crun", "1.36.3", true, "crun version 1.8.1", []string{old}},
		{"an old crun, with which an old CRI-O works", "1.29.5", true, "crun version 1.8.1", nil},
		{"the first crun that works", "1.30.0", true, "crun version 1.15", nil},
		{"the last one that does not", "1.30.0", true, "crun version 1.14.4", []string{old}},
		{"an old runc, which works", "1.36.3", true, "runc version 1.1.5", nil},
		{"a runtime that says nothing", "1.36.3", true, "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := healthy(t)
			p.runtime.LikeCRIO()
			p.runtime.SetCRIO(row.version, row.events, p.ociRuntime(row.oci))
			found := p.found("runtime")
			if len(found) != 1+len(row.tells) || found[0].Level != OK {
				t.Fatalf("found %+v", found)
			}
			for k, text := range row.tells {
				if f := found[1+k]; !strings.Contains(f.Message, text) || !strings.Contains(f.Remedy, "/etc/crio/crio.conf.d") {
					t.Errorf("found %+v", f)
				}
			}
		})
	}
}

// What is not there is not run, and what cannot be read is not compared.
func TestNoOCIRuntimeIsNoOldOne(t *testing.T) {
	if v := crunVersion(t.Context(), "/nowhere/crun"); v != "" || older(v, 1, 15) || older("UNKNOWN", 1, 15) {
		t.Errorf("it is version %q", v)
	}
}

// CRI-O does not report its folders, but names them in what it says.
func TestAFolderOfCRIOsNetworkIsNotGuessed(t *testing.T) {
	p := healthy(t)
	p.runtime.LikeCRIO()
	p.runtime.SetCondition(rt.NetworkReady, false, "x", "No CNI configuration file in /srv/cni/. Has your network provider started?")
	found := p.found("pod network")
	if len(found) != 1 || !strings.HasPrefix(found[0].Remedy, "put a CNI configuration into CRI-O's network_dir") {
		t.Errorf("found %+v", found)
	}
}

// attempt runs a container of img:1 to its end, with that number.
func (p *patient) attempt(number uint32, after time.Duration, code int32) {
	p.Helper()
	pod := &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: "web", Namespace: "d", Uid: "u", Attempt: number}}
	sandbox, err := p.Runtime.RunSandbox(p.Context(), pod, "")
	if err != nil {
		p.Fatal(err)
	}
	id, err := p.Runtime.CreateContainer(p.Context(), sandbox, &rt.ContainerConfig{
		Metadata: &rt.ContainerMetadata{Name: "c", Attempt: number}, Image: &rt.ImageSpec{Image: "img:1"}, Labels: map[string]string{labelUID: "u"}}, pod)
	if err != nil {
		p.Fatal(err)
	}
	if err := p.Runtime.StartContainer(p.Context(), id); err != nil {
		p.Fatal(err)
	}
	time.Sleep(after)
	p.runtime.Exit(id, code)
}

func TestImagesThatAPowerCutMayHaveDamagedAreTold(t *testing.T) {
	const boot = "00000000-0000-0000-0000-000000000001"
	again := func(p *patient) { p.attempt(1, 0, 127); p.attempt(2, 0, 127) }
	for _, row := range []struct {
		name  string
		noted string // the boot that was unclean
		make  func(p *patient)
		told  bool
	}{
		{"it fails at once, again and again", boot, again, true},
		{"after an orderly boot", "00000000-0000-0000-0000-000000000002", again, false},
		{"no agent has noted a boot", "", again, false},
		{"on another runtime", boot, func(p *patient) { again(p); p.runtime.LikeContainerd16() }, false},
		{"it failed once", boot, func(p *patient) { p.attempt(0, 0, 127) }, false},
		{"it succeeded then", boot, func(p *patient) { p.attempt(1, 0, 127); p.attempt(2, 0, 0) }, false},
		{"it ran for a while", boot, func(p *patient) { p.attempt(1, 0, 127); p.attempt(2, 1100*time.Millisecond, 1) }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := healthy(t)
			p.runtime.AddImage("img:1")
			if row.name != "on another runtime" {
				p.runtime.LikeCRIO()
			}
			p.write("proc/sys/kernel/random/boot_id", boot+"\n")
			if err := os.WriteFile(filepath.Join(p.Config.Root, checkpoint.UncleanBoot), []byte(row.noted+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			row.make(p)
			found := p.found("images")
			if !row.told && len(found) > 0 || row.told && (len(found) != 1 || !strings.HasSuffix(found[0].Message, "library/img:1") || !strings.Contains(found[0].Remedy, "crio check --quick --repair")) {
				t.Errorf("found %+v", found)
			}
		})
	}
}
