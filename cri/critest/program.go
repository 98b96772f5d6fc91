package critest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Program is what a container does once it is started. The zero Program runs
// until it is told to end, then exits at once with code 0.
type Program struct {
	exits      bool
	after      time.Duration
	code       int32
	startError error
	logs       []string
	writes     map[string]string

	ignoresTerm bool
	termAfter   time.Duration
	termCode    int32
}

// Runs runs until it is told to end.
func Runs() Program { return Program{} }

// Exits has exited before StartContainer returns.
func Exits(code int32) Program { return Program{exits: true, code: code} }

// ExitsAfter exits by itself.
func ExitsAfter(d time.Duration, code int32) Program {
	return Program{exits: true, after: d, code: code}
}

// FailsToStart makes StartContainer fail; the container ends with code 128, StartError.
func FailsToStart(err error) Program { return Program{startError: err} }

// OnTerm exits with code, d after SIGTERM (if the grace allows).
func (p Program) OnTerm(d time.Duration, code int32) Program {
	p.termAfter, p.termCode = d, code
	return p
}

// IgnoresTerm runs until it is killed when its grace has passed (exit code 137).
func (p Program) IgnoresTerm() Program { p.ignoresTerm = true; return p }

// Logs writes lines to the container's log on start, where its folder exists.
func (p Program) Logs(lines ...string) Program { p.logs = lines; return p }

// Writes writes text on start to the file mounted at a path in the container.
func (p Program) Writes(path, text string) Program {
	p.writes = map[string]string{path: text}
	return p
}

// Program tells what containers do from their next start on. which is a
// container's name, alone, as "pod/container" or "namespace/pod/container", or
// an image's reference; the narrowest counts. Of several programs each start of
// one pod's container takes the next, and the last stays.
func (r *Runtime) Program(which string, programs ...Program) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.programs[which] = programs
}

// programOf: r.mu is held.
func (r *Runtime) programOf(c *container) Program {
	name := c.name()
	_, short, _ := strings.Cut(name, "/")
	for _, which := range []string{name, short, filepath.Base(name), c.config.GetImage().GetUserSpecifiedImage(), c.config.GetImage().GetImage()} {
		if programs := r.programs[which]; len(programs) > 0 {
			return programs[min(r.starts[name], len(programs)-1)]
		}
	}
	return Program{}
}

// run starts a container's program. r.mu is held.
func (r *Runtime) run(c *container) {
	c.state, c.started = rt.ContainerState_CONTAINER_RUNNING, time.Now()
	for _, line := range append(c.program.logs, "") {
		c.log(line)
	}
	for _, m := range c.config.Mounts {
		if text, ok := c.program.writes[m.ContainerPath]; ok {
			if err := os.WriteFile(m.HostPath, []byte(text), 0o666); err != nil {
				r.t.Errorf("critest: %v", err)
			}
		}
	}
	r.noteDoubles(c.sandbox)
	r.emit(c.sandbox, c.id, rt.ContainerEventType_CONTAINER_STARTED_EVENT)
	if c.program.exits {
		r.exitAfter(c, c.program.after, c.program.code)
	}
}

// terminate is SIGTERM. r.mu is held.
func (r *Runtime) terminate(c *container) {
	if !c.program.ignoresTerm {
		r.exitAfter(c, c.program.termAfter, c.program.termCode)
	}
}

// kill is SIGKILL; it has no effect on a process that has ended. r.mu is held.
func (r *Runtime) kill(c *container) {
	if c.state == rt.ContainerState_CONTAINER_UNKNOWN {
		r.exit(c, unknownCode, "Unknown")
		return
	}
	r.exit(c, killedCode, "")
}

// exitAfter: r.mu is held.
func (r *Runtime) exitAfter(c *container, d time.Duration, code int32) {
	if d <= 0 {
		r.exit(c, code, "")
		return
	}
	c.timers = append(c.timers, time.AfterFunc(d, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.exit(c, code, "")
	}))
}

// exit ends a container that is alive. An empty reason follows from the code.
// r.mu is held.
func (r *Runtime) exit(c *container, code int32, reason string) {
	if !c.alive() {
		return
	}
	c.end(code, reason, "")
	r.emit(c.sandbox, c.id, rt.ContainerEventType_CONTAINER_STOPPED_EVENT)
}

func (c *container) end(code int32, reason, message string) {
	switch {
	case reason != "":
	case code == 0:
		reason = "Completed"
	default:
		reason = "Error"
	}
	c.state, c.finished = rt.ContainerState_CONTAINER_EXITED, time.Now()
	c.exitCode, c.reason, c.message = code, reason, message
	c.disarm()
	close(c.done)
}

func (c *container) disarm() {
	for _, timer := range c.timers {
		timer.Stop()
	}
	c.timers = nil
}

// logPath returns "" where no log is wanted.
func (c *container) logPath() string {
	if c.sandbox.config.GetLogDirectory() == "" || c.config.GetLogPath() == "" {
		return ""
	}
	return filepath.Join(c.sandbox.config.LogDirectory, c.config.LogPath)
}

// log appends a line, or with none reopens the log; where its folder does not
// exist nothing is written.
func (c *container) log(line string) {
	path := c.logPath()
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return
	}
	defer file.Close()
	if line != "" {
		fmt.Fprintf(file, "%s stdout F %s\n", time.Now().Format(time.RFC3339Nano), line)
	}
}
