package message

import "time"

// Time is a moment for people: by the machine's clock, with its zone. For programs it is RFC 3339.
func Time(t time.Time) Name { return Name(t.Local().Format("2006-01-02 15:04:05 MST")) }
