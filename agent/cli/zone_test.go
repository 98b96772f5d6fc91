package cli

import (
	"os"
	"testing"
	"time"
)

// TestMain has times told in one zone, wherever the tests run.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}
