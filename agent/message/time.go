package message

import "time"

// Time is a moment as people read it everywhere: by the machine's clock, with its zone. What
// programs read is RFC 3339.
func Time(t time.Time) Name { return Name(t.Local().Format("2006-01-02 15:04:05 MST")) }
