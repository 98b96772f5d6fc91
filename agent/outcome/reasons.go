package outcome

import (
	"fmt"
	"slices"

	"monopod/agent/status"
	"monopod/manifests"
)

// Reasons that follow from the facts about a name.
const (
	wasForgotten  = "it was forgotten by hand, and no answer has given it since"
	isKept        = "the file does not give it now: its last version is kept until it is certain that it is gone"
	waitsForOther = "%s gave it before: it waits until it is certain that this file is gone"
	mayBeHidden   = "it is not in the file, and an error there may be why: %s"
)

// fileErrors are the errors of a file, the first of each kind.
type fileErrors struct {
	any     *status.Problem            // of anything in it; nil: it has no error
	file    *status.Problem            // of the file as a whole
	pods    map[string]*status.Problem // by pod
	objects map[string]*status.Problem // by kind and name
}

func errorsIn(f *manifests.File) fileErrors {
	if len(f.Problems) == 0 {
		return fileErrors{}
	}
	e := fileErrors{pods: map[string]*status.Problem{}, objects: map[string]*status.Problem{}}
	for k := range slices.Backward(f.Problems) {
		p := &f.Problems[k]
		switch {
		case p.Warning:
			continue
		case p.Object != "":
			e.objects[p.Object] = p
		case p.Pod != "":
			e.pods[p.Pod] = p
		default:
			e.file = p
		}
		e.any = p
	}
	return e
}

// reasonOf returns a problem as a reason.
func reasonOf(p *status.Problem) string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}

// known is the facts about one name in one file.
type known struct {
	isGiven     bool            // the file gives it
	by          string          // the file that gave the desired version; "": none is desired
	isAsGiven   bool            // the desired version is the one that the file gives
	isForgotten bool            // it is left out because it was forgotten
	own         *status.Problem // an error of its own; nil: none
}

// result is the outcome of a name.
type result struct {
	state        status.State
	reason, by   string
	line, column int
}

// result returns the outcome that follows from the facts. It has a reason only where one is known.
func (v *Versions) result(f *manifests.File, k known, e fileErrors) result {
	isDesired := k.by != ""
	switch {
	case k.isGiven && isDesired && k.by != f.Path:
		return v.elsewhere(k)
	case k.isGiven && isDesired && k.isAsGiven:
		return result{state: status.Accepted}
	case k.own != nil:
		return rejected(k.own)
	case k.isForgotten:
		return result{state: status.Rejected, reason: wasForgotten}
	case e.file != nil:
		return rejected(e.file)
	case !k.isGiven && isDesired:
		return missing(f, e)
	}
	return result{state: status.Waiting}
}

// elsewhere returns the outcome of a name that another file gave. If that file is gone, its version
// is used until this is certain.
func (v *Versions) elsewhere(k known) result {
	if v.Snapshot.File(k.by) == nil {
		return result{state: status.Waiting, reason: fmt.Sprintf(waitsForOther, k.by)}
	}
	r := result{}
	if k.own != nil {
		r = rejected(k.own)
	}
	r.state, r.by = status.Superseded, k.by
	return r
}

// missing returns the outcome of a name that the file gave once, and now neither gives nor has an
// error for.
func missing(f *manifests.File, e fileErrors) result {
	switch {
	case e.any != nil: // it is kept, as the error may hide it
		r := rejected(e.any)
		r.reason = fmt.Sprintf(mayBeHidden, r.reason)
		return r
	case f.SHA256 == "":
		return result{state: status.Unread}
	}
	return result{state: status.Waiting, reason: isKept}
}

func rejected(why *status.Problem) result {
	return result{state: status.Rejected, reason: reasonOf(why), line: why.Line, column: why.Column}
}
