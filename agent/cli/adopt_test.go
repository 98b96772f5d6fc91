package cli

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/disk"
	"monopod/agent/handover"
	"monopod/manifests"
)

func TestTheSurveyIsPrinted(t *testing.T) {
	pod := func(name string) *manifests.Pod { return &manifests.Pod{Pod: runningPod(name)} }
	s := handover.Survey{
		Candidates: []handover.Candidate{{Pod: pod("web"), Running: 2}, {Pod: pod("db"), Differs: []string{"its logs are elsewhere"}}},
		Own:        []manifests.Key{pod("own").Key()}, New: []manifests.Key{pod("new").Key()}, Left: []string{"default/stray-node1"},
	}
	var out bytes.Buffer
	printSurvey(&out, &s)
	want := `
take over   default/web-node1     containers that run: 2
differs     default/db-node1      its logs are elsewhere
own         default/own-node1     it is this root dir's already
start       default/new-node1     nothing runs of it
leave       default/stray-node1   no manifest gives it here: it runs on without an agent
`
	if "\n"+out.String() != want {
		t.Errorf("%s", out.String())
	}
}

func TestNothingIsAdoptedBesideAnAgent(t *testing.T) {
	root := volumeRoot(t, nil) // which is locked
	err := nobodyRuns(root)
	if err == nil || !strings.Contains(err.Error(), "stop it; its pods run on") && !strings.Contains(err.Error(), "a kubelet runs") {
		t.Errorf("%v", err)
	}
}

// An agent that cannot read its list of adopted sandboxes ends, and names `monopod adopt --yes`. If
// they are gone by then, the list is empty.
func TestAnEmptySurveyRepairsADamagedListOfAdoptedSandboxes(t *testing.T) {
	root, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	err = root.Adopt([]string{"gone"})
	root.Close()
	list := filepath.Join(root.Dir, checkpoint.AdoptedFile)
	if err := errors.Join(err, os.WriteFile(list, nil, 0o600), os.WriteFile(disk.TwinOf(list), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	flags := flag.NewFlagSet("adopt", flag.ContinueOnError)
	isYes := flags.Bool("yes", false, "")
	var out bytes.Buffer
	app := App()
	app.Writer, app.ErrWriter = &out, &out
	for _, *isYes = range []bool{false, true} {
		if err := record(cli.NewContext(app, flags, nil), config.Config{Root: root.Dir, NodeName: "node1"}, &handover.Survey{}); err != nil {
			t.Error(err)
		}
		again, err := checkpoint.OpenRoot(root.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.ReadAdopted(); (err == nil) != *isYes {
			t.Errorf("with --yes=%v: %v\n%s", *isYes, err, &out)
		}
		again.Close()
	}
	none := filepath.Join(root.Dir, "none")
	if err := record(cli.NewContext(app, flags, nil), config.Config{Root: none, NodeName: "node1"}, &handover.Survey{}); err != nil || checkpoint.Exists(none) {
		t.Errorf("a root dir is made for nothing: %v", err)
	}
}
