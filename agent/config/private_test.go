package config

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever stands at the place of a setting, what is wrong is said without it: it may be
// the value of a header.
func TestProblemsOfSettingsQuoteNoValue(t *testing.T) {
	const value = "90817263"
	wrong := 0
	for _, row := range fileRows() {
		for _, form := range []string{"%s_/:", "-%s", "%s.5", "[%s_/:]", "[[%s]]", "{%s_/: x}", "{a: %s_/}", "{a b: %s}", "{cpu: %s/}", "{memory.available: -%s}", "*%s", "!!int %sx", "{<<: %s}", "'%s", "{? [%s] : x}"} {
			for _, text := range []string{asFile(row.name, fmt.Sprintf(form, value)), asFile(row.name, "x") + "\n" + value + ": x\n"} {
				_, problems := readText(t, t.TempDir(), text, Default())
				if problems != "" {
					wrong++
				}
				if strings.Contains(problems, value) {
					t.Errorf("%s: %s", text, problems)
				}
			}
		}
	}
	if wrong < 500 {
		t.Errorf("only %d of them are wrong", wrong)
	}
}
