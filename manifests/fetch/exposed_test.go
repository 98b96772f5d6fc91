package fetch

import "testing"

func TestWhatLeavesTheMachineInPlainTextIsExposed(t *testing.T) {
	for url, want := range map[string]string{
		"https://h/x": "", "http://127.0.0.1:80/x": "", "http://[::1]/x": "", "http://localhost": "", "http://LocalHost:1/": "", "": "",
		"http://127.1.2.3/": "", "http://h/x": "h", "HTTP://me:pass@h:8/x": "h:8", "http://10.0.0.1": "10.0.0.1", "http://localhost.example": "localhost.example",
		"http://[fe80::1]:7/": "[fe80::1]:7", "http://127.0.0.1.example/": "127.0.0.1.example",
	} {
		if got := ExposedTo(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
