package docs

import (
	"reflect"
	"testing"
)

// What a person does with a block follows from its kind and the paragraph above it.
func TestStepsOfBlocks(t *testing.T) {
	for _, c := range []struct {
		name  string
		block Block
		want  []Step
	}{
		{"sh is typed as a whole", Block{Line: 3, Kind: "sh", Text: "a\nb\n"}, []Step{{Line: 3, Command: "a\nb\n"}}},
		{"a console is typed line by line, and quotes", Block{Line: 3, Kind: "console", Text: "$ cat <<E\n> x\n> E\nx\n\n$ true\n$ ps\n1\n2\n"},
			[]Step{{3, "cat <<E\nx\nE\n", "x", true}, {8, "true\n", "", true}, {9, "ps\n", "1\n2", true}}},
		{"a file is put where the text says", Block{Line: 3, Kind: "yaml", Text: "a: 1\n", Above: "Put this into `b/c.yaml`:"},
			[]Step{{Line: 3, Command: "cat >b/c.yaml <<'END OF THE BLOCK'\na: 1\nEND OF THE BLOCK\n"}}},
		{"or added to it", Block{Line: 3, Kind: "yaml", Text: "a: 1\n", Above: "Then add this to `c.yaml`:"},
			[]Step{{Line: 3, Command: "cat >>c.yaml <<'END OF THE BLOCK'\na: 1\nEND OF THE BLOCK\n"}}},
		{"a file without a place is not done", Block{Kind: "yaml", Text: "a: 1\n", Above: "For example:"}, nil},
		{"what has no fence is not done", Block{Kind: Indented, Text: "ls\n"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.block.Steps()
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("steps %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestAScreenBeginsWithWhatIsTyped(t *testing.T) {
	if _, err := (Block{Line: 3, Kind: "console", Text: "NAME\n$ ps\n"}).Steps(); err == nil {
		t.Error("output that no command has printed is accepted")
	}
}
