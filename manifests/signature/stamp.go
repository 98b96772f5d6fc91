package signature

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"monopod/manifests/annotations"
	"monopod/manifests/decode"
)

// Stamp is what signed content says of itself, in annotations of its List.
type Stamp struct {
	Serial int64  // from 1; a later content has a higher one
	Node   string // the only node that it is for; "": any
}

// IsForOther reports whether the content is for another node than this one.
func (s Stamp) IsForOther(node string) bool { return s.Node != "" && s.Node != node }

// ReadStamp reads the stamp of content, which is in its first document. The errors follow the name
// of the content, and quote nothing of it.
func ReadStamp(content []byte) (s Stamp, err error) {
	for d := range decode.Documents(content) {
		if d.Err.Message != "" {
			return s, fmt.Errorf("line %d: its List cannot be read: %s", d.Err.Line, d.Err.Message)
		}
		return stampOf(d)
	}
	return s, errNoSerial
}

var errNoSerial = errors.New("has no serial number: write the annotation " + annotations.Serial +
	" into the metadata of a List, and raise it with each change")

func stampOf(d decode.Document) (s Stamp, err error) {
	err = checkNames(d)
	if err != nil {
		return s, err
	}
	serial, line, err := text(d, annotations.Serial)
	if err != nil {
		return s, err
	}
	if line == 0 {
		return s, errNoSerial
	}
	s.Serial, err = strconv.ParseInt(serial, 10, 64)
	if err != nil || s.Serial < 1 || strings.TrimLeft(serial, "+0") != serial { // YAML may mean another number by them
		return s, fmt.Errorf("line %d: %s must be a whole number from 1 to %d", line, annotations.Serial, math.MaxInt64)
	}
	s.Node, line, err = text(d, annotations.Node)
	if err == nil && line > 0 && s.Node == "" {
		err = fmt.Errorf("line %d: %s is empty: write the node's name, or leave it out", line, annotations.Node)
	}
	return s, err
}

// checkNames refuses an annotation that is none of monopod's but for a slip: where the node's name was
// meant, any node would take the list.
func checkNames(d decode.Document) error {
	for _, at := range decode.Keys(d.Root, "metadata", "annotations") {
		meant, wrong := slipIn(at.Value)
		if wrong {
			return fmt.Errorf("line %d: an annotation of its List is unknown: %s", at.Line+d.Line, meant)
		}
	}
	return nil
}

// slipIn reports whether a name of an annotation is none of monopod's, but close to one, and says what
// may be meant.
func slipIn(name string) (meant string, wrong bool) {
	_, known := annotations.Named(name)
	near, misspelt := annotations.Misspelt(name, annotations.OnLists)
	if known || !misspelt && !annotations.MeansMonopod(name) {
		return "", false
	}
	if near == "" {
		near = annotations.Meant(name, annotations.OnLists)
	}
	if near == "" {
		return "it may have " + annotations.Serial + " and " + annotations.Node, true
	}
	return fmt.Sprintf("did you mean %q?", near), true
}

// text returns the value of an annotation of a document and its line; 0: there is none.
func text(d decode.Document, name string) (value string, line int, err error) {
	n := d.Root
	for _, key := range []string{"metadata", "annotations", name} {
		at, is := decode.Lookup(n, key)
		if is == nil {
			return "", 0, nil
		}
		if d.IsTwice(at) {
			return "", 0, fmt.Errorf("line %d: %s is written twice: leave one of them out", at.Line+d.Line, key)
		}
		n = decode.Follow(is)
	}
	if n.Kind != yaml.ScalarNode {
		return "", 0, fmt.Errorf("line %d: %s is no text: write one value", n.Line+d.Line, name)
	}
	return n.Value, n.Line + d.Line, nil
}
