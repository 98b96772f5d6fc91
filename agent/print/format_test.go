package print

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestColorsAreForTerminals(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	rows := []struct {
		name string
		f    *os.File
		env  map[string]string
		want bool
	}{
		{"terminal", terminal, map[string]string{"TERM": "xterm"}, true},
		{"NO_COLOR", terminal, map[string]string{"NO_COLOR": "1"}, false},
		{"a terminal that knows none", terminal, map[string]string{"TERM": "dumb"}, false},
		{"file", file, nil, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := Colored(r.f, func(key string) string { return r.env[key] }); got != r.want {
				t.Errorf("Colored = %v, want %v", got, r.want)
			}
		})
	}
}
