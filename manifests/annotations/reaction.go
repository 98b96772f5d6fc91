package annotations

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// RestartOnConfigChange is the short form of OnConfigChange with the value restart.
const RestartOnConfigChange = "monopod.restart-on-config-change"

// OnConfigChange is the annotation that says what happens to the pod's containers when an object of
// their variables or volumes changes. With a slash and a container's name behind it, it is of that
// container alone.
const OnConfigChange = "monopod.on-config-change"

// Reaction is what happens to a container when such an object has changed. The zero Reaction is
// nothing.
type Reaction struct {
	Restart bool
	Signal  string   // is sent to its first process, such as SIGHUP
	Command []string // is run in it
}

// IsSet reports whether anything happens.
func (r Reaction) IsSet() bool { return r.Restart || r.Reloads() }

// Reloads reports whether the container runs on and is told of the change.
func (r Reaction) Reloads() bool { return r.Signal != "" || len(r.Command) > 0 }

// String returns what happens in a word or two.
func (r Reaction) String() string {
	switch {
	case r.Restart:
		return "restart"
	case r.Signal != "":
		return r.Signal
	}
	return strings.Join(r.Command, " ")
}

const (
	bySignal  = "signal:"
	byCommand = "exec:"
)

var errReaction = errors.New(reactionWords)

const reactionWords = `restart, signal:NAME such as signal:HUP, exec:COMMAND ARGS with spaces between, or exec:["COMMAND", "ARG"]`

// ParseReaction parses a value of OnConfigChange. An error follows "must be".
func ParseReaction(text string) (r Reaction, err error) {
	if text == "restart" {
		return Reaction{Restart: true}, nil
	}
	if name, is := strings.CutPrefix(text, bySignal); is {
		r.Signal, err = signal(name)
		return r, err
	}
	command, is := strings.CutPrefix(text, byCommand)
	if !is {
		return r, errReaction
	}
	r.Command, err = words(command)
	if err != nil {
		return Reaction{}, err
	}
	if len(r.Command) == 0 || r.Command[0] == "" {
		return Reaction{}, errReaction
	}
	return r, nil
}

// words returns the words of a command: those between spaces, or those of a list.
func words(command string) (words []string, err error) {
	if !strings.HasPrefix(strings.TrimSpace(command), "[") {
		if strings.ContainsAny(command, "\"'`\\") {
			return nil, errors.New(`a list where words have spaces or quotes, which mean nothing without one: exec:["sh", "-c", "reload now"]`)
		}
		return strings.Fields(command), nil
	}
	var list []*string
	if json.Unmarshal([]byte(command), &list) != nil || slices.Contains(list, nil) {
		return nil, errReaction
	}
	for _, word := range list {
		words = append(words, *word)
	}
	return words, nil
}

// signal returns the full name of a signal that a program can handle.
func signal(name string) (string, error) {
	full := "SIG" + strings.TrimPrefix(name, "SIG")
	switch s := unix.SignalNum(full); s {
	case 0:
		return "", errors.New("a signal that Linux has, such as signal:HUP or signal:USR1")
	case unix.SIGKILL, unix.SIGSTOP:
		return "", fmt.Errorf("a signal that a program can handle, which %s is not", full)
	}
	return full, nil
}

// HasReactions reports whether any container of a pod may have a reaction.
func HasReactions(pod *v1.Pod) bool {
	for name := range pod.Annotations {
		if name == RestartOnConfigChange || strings.HasPrefix(name, OnConfigChange) {
			return true
		}
	}
	return false
}

// ReactionOf returns the reaction of a container of a pod.
func ReactionOf(pod *v1.Pod, container string) Reaction {
	for _, name := range []string{OnConfigChange + "/" + container, OnConfigChange} {
		if text, said := pod.Annotations[name]; said {
			r, _ := ParseReaction(text) // a version that runs was checked
			return r
		}
	}
	return Reaction{Restart: pod.Annotations[RestartOnConfigChange] == "true"}
}
