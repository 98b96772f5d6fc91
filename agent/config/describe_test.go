package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// inTable has a text mean itself in the cell of a table.
var inTable = strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`)

// docs/settings.md ends with the table of settings; MONOPOD_UPDATE=1 writes it again.
func TestTheDocsHaveTheTableOfSettings(t *testing.T) {
	const file, title = "../../docs/settings.md", "## All settings\n"
	text, err := os.ReadFile(file)
	head, _, found := strings.Cut(string(text), title)
	if err != nil || !found {
		t.Fatalf("%s has no table (%v)", file, err)
	}
	var b strings.Builder
	b.WriteString(head + title + "\nA setting that is live counts at once where it changes; others do after a restart of monopod. Those marked (ours) a kubelet does not have.\n" +
		"\n| setting | flag | default | live | what it means |\n|---|---|---|---|---|\n")
	for _, s := range Settings() {
		flag, live := "", ""
		if s.Flag != "" {
			flag = "`" + s.Flag + "`"
		}
		if s.Live {
			live = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", s.Name, flag, s.Default, live, inTable.Replace(s.About))
	}
	if os.Getenv("MONOPOD_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != b.String() {
		t.Errorf("%s is not the table: MONOPOD_UPDATE=1 go test ./agent/config -run Docs", file)
	}
}
