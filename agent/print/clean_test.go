package print

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// hostile is text whose characters turn around what stands beside them, or command
// a terminal: as they are, and in UTF-8.
const hostile = "a\u202eb\u2066c\u2069d\u200ee\u200ff\u061cg\u009b31mh\u0085i\x7fj\x1bk"

// raw returns the hostile characters in a text.
func raw(text string) (found []rune) {
	for _, r := range text {
		if strings.ContainsRune(hostile, r) && (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			found = append(found, r)
		}
	}
	return found
}

func TestTablesShowNoCharacterThatTurnsTextAround(t *testing.T) {
	for _, text := range []string{hostile, "x\x9b31my\x85z"} {
		if got := OneLine(text); len(raw(got)) > 0 || (strings.Contains(got, "\x9b") || strings.Contains(got, "\x85")) && !strings.Contains(got, "\ufffd") {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	if got := OneLine("Grüße, мир, שלום, مرحبا"); got != "Grüße, мир, שלום, مرحبا" {
		t.Errorf("other writing is shown as %q", got)
	}
}

func TestOutputForProgramsEscapesWhatTerminalsObey(t *testing.T) {
	p := v1.Pod{}
	p.Name, p.Annotations = `plain \x01 text`, map[string]string{hostile: "v", "b": hostile, "c": "mark \uf8f0 and \x01\uf8f0202e and \\x01\uf8f0202e",
		"d": strings.Repeat("long words that are folded ", 20) + hostile}
	for _, output := range []string{"json", "yaml"} {
		var b bytes.Buffer
		if err := As(&b, output, p); err != nil {
			t.Fatal(err)
		}
		if found := raw(strings.ReplaceAll(b.String(), "\n", "")); len(found) > 0 {
			t.Errorf("%s has %q raw", output, found)
		}
		var back v1.Pod
		read := map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": func(b []byte, v any) error { return yaml.Unmarshal(b, v) }}[output]
		if err := read(b.Bytes(), &back); err != nil || back.Name != p.Name {
			t.Fatalf("%s: %v, name %q\n%s", output, err, back.Name, b.Bytes())
		}
		for key, value := range p.Annotations {
			if back.Annotations[key] != value {
				t.Errorf("%s: %q became %q", output, value, back.Annotations[key])
			}
		}
	}
}

// What a command prints is for terminals and programs, not for a page: < stays <.
func TestJSONIsReadable(t *testing.T) {
	for indent, want := range map[string]string{"": `{"a":"1 > 0 & <b>"}`, "  ": "{\n  \"a\": \"1 > 0 & <b>\"\n}"} {
		got, err := JSON(map[string]string{"a": "1 > 0 & <b>"}, indent)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}
