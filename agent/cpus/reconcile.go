package cpus

// Key is a container of a pod.
type Key struct{ UID, Container string }

// Running is a container that runs.
type Running struct {
	Key
	ID string // of the runtime
}

// Update is the CPUs that a running container must get.
type Update struct {
	Running
	CPUs string
}

// Updates returns which of the running containers need other CPUs than those that were sent to them
// last, "" if none were.
func (t *Table) Updates(running []Running, sent func(Running) string) []Update {
	var all []Update
	for _, r := range running {
		if text := t.On(r.UID, r.Container).String(); text != "" && text != sent(r) {
			all = append(all, Update{r, text})
		}
	}
	return all
}
