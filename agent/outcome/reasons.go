package outcome

import (
	"fmt"
	"slices"

	"monopod/agent/status"
	"monopod/manifests"
)

// Reasons that follow from what is known of a name.
const (
	wasForgotten  = "it was forgotten by hand, and no answer has given it since"
	isKept        = "the file does not give it now: its last version is kept until it is certain that it is gone"
	waitsForOther = "%s gave it before: it waits until it is certain that this file is gone"
	mayBeHidden   = "it is not in the file, and an error there may be why: %s"
)

// fileErrors are the errors of a file, the first of each kind.
type fileErrors struct {
	any     *status.Problem            // of whatever is in it; nil: it has none
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

// reasonOf is a problem as a reason.
func reasonOf(p *status.Problem) string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}

// known is what is known of one name in one file.
type known struct {
	isGiven     bool            // the file gives it
	by          string          // the file that gave what is desired; "": nothing is
	isAsGiven   bool            // what is desired is what the file gives
	isForgotten bool            // it is left out for that
	own         *status.Problem // an error of its own; nil: it has none
}

// result is what became of a name.
type result struct {
	state        status.State
	reason, by   string
	line, column int
}

// result says what follows from what is known. A reason is given where its fact is known,
// and none where none is.
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

// elsewhere is what became of what another file gave. One that is gone has it until that is
// certain.
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

// missing is what became of what the file gave once, and now neither gives nor is wrong
// about.
func missing(f *manifests.File, e fileErrors) result {
	switch {
	case e.any != nil: // it is kept, as it may be behind that
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
