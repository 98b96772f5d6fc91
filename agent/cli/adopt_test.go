package cli

import (
	"bytes"
	"strings"
	"testing"

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
