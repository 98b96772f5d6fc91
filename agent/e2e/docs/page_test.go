package docs

import (
	"reflect"
	"testing"
)

// A page has blocks with a fence and blocks of four spaces, each with the paragraph above it.
func TestBlocksAreFound(t *testing.T) {
	page, err := Parse("p.md", "# Title\n\nText that\ngoes on:\n\n    one\n\n      two\n\nPut this into `a.yaml`:\n\n```yaml\na: 1\n\n    b\n```\n- item\n    more of the item\n```sh\nls\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Block{
		{Line: 6, Kind: Indented, Text: "one\n\n  two\n", Above: "Text that goes on:"},
		{Line: 13, Kind: "yaml", Text: "a: 1\n\n    b\n", Above: "Put this into `a.yaml`:"},
		{Line: 20, Kind: "sh", Text: "ls\n", Above: "- item more of the item"},
	}
	if !reflect.DeepEqual(page.Blocks, want) {
		t.Errorf("blocks\n%+v\nwant\n%+v", page.Blocks, want)
	}
}

// A fence that is never closed would take the rest of the page for a block.
func TestABlockHasAnEnd(t *testing.T) {
	if _, err := Parse("p.md", "```sh\nls\n"); err == nil || err.Error() != "p.md:2: this block has no end" {
		t.Errorf("error %v", err)
	}
}
