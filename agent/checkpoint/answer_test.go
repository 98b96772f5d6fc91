package checkpoint

import (
	"bytes"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"monopod/manifests"
)

func TestAnAnswerOfAURLIsKept(t *testing.T) {
	const url = "https://me:secret@h/x"
	root := &Root{Dir: t.TempDir()}
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	if a := root.Answer(url, log); a != nil || said.Len() > 0 {
		t.Errorf("%v of an empty root dir, said %s", a, &said)
	}
	want := manifests.Answer{Data: []byte("a\nb\n"), ETag: `"v\"1"`, Modified: "then", Unproven: true, Signer: "key", Serial: 7}
	if err := root.SaveAnswer(url, want); err != nil {
		t.Fatal(err)
	}
	if got := root.Answer(url, log); got == nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v", got)
	}
	if root.Answer(url+"y", log) != nil || root.Answer("", log) != nil {
		t.Error("it counts for another URL")
	}
	path := root.Path(answerFile)
	text, err := os.ReadFile(path)
	if info, _ := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(text), "secret") {
		t.Errorf("%v %v, %s", err, info.Mode(), text)
	}
	for name, spoilt := range map[string]string{"cut": string(text[:len(text)-1]), "empty": "", "no head": "a\nb\n"} {
		said.Reset()
		if err := os.WriteFile(path, []byte(spoilt), 0o600); err != nil {
			t.Fatal(err)
		}
		if root.Answer(url, log) != nil || !strings.Contains(said.String(), "unusable; ignoring it") {
			t.Errorf("%s: said %s", name, &said)
		}
	}
}

func TestTheSerialOfSignedContentIsKept(t *testing.T) {
	const url = "https://me:secret@h/x"
	root := &Root{Dir: t.TempDir()}
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	if s := root.Serial(url, log); s != nil || said.Len() > 0 {
		t.Errorf("%v of an empty root dir, said %s", s, &said)
	}
	want := manifests.Serial{Signer: "key", Number: 7, Node: "edge7", Sum: "abc"}
	if err := root.SaveSerial(url, want); err != nil {
		t.Fatal(err)
	}
	if got := root.Serial(url, log); got == nil || *got != want {
		t.Errorf("%+v", got)
	}
	if root.Serial(url+"y", log) != nil {
		t.Error("it counts for another URL")
	}
	path := root.Path(serialFile)
	text, err := os.ReadFile(path)
	if info, _ := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(text), "secret") {
		t.Errorf("%v %v, %s", err, info.Mode(), text)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if root.Serial(url, log) != nil || !strings.Contains(said.String(), "is unusable") {
		t.Errorf("of an empty file, said %s", &said)
	}
}
