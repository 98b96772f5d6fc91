package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Page is one page of the docs.
type Page struct {
	Name   string // such as README.md
	Blocks []Block
}

// Block is what a page sets off from its text.
type Block struct {
	Line  int    // in the page, of its first line of text; the first line is 1
	Kind  string // the word behind its fence; "": none; Indented: it has no fence
	Text  string // ends with a line feed
	Above string // the paragraph above it, as one line
}

// Indented is the kind of a block that is set off by four spaces.
const Indented = "indented"

// First returns the first line of the block.
func (b Block) First() string {
	first, _, _ := strings.Cut(b.Text, "\n")
	return strings.TrimSpace(first)
}

// ReadPages returns the README and all pages of docs/ in the checkout at root.
func ReadPages(root string) (pages []Page, err error) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		page, err := Parse(filepath.Base(file), string(text))
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// Parse finds the blocks of a page.
func Parse(name, text string) (Page, error) {
	p := scanner{page: Page{Name: name}}
	for line := range strings.Lines(text) {
		p.line++
		p.take(line)
	}
	if p.isFenced {
		return p.page, fmt.Errorf("%s:%d: this block has no end", name, p.block.Line)
	}
	p.end()
	return p.page, nil
}

// scanner is where Parse is in a page.
type scanner struct {
	page     Page
	line     int
	block    *Block // that it is in; nil: in text
	isFenced bool   // that block is
	above    string // the paragraph before
	isBlank  bool   // the line before was
}

// take takes the next line of the page.
func (p *scanner) take(line string) {
	text, isIndented := strings.CutPrefix(line, "    ")
	kind, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
	switch {
	case p.isFenced && isFence:
		p.end()
	case p.isFenced:
		p.block.Text += line
	case isFence:
		p.end()
		p.start(kind, p.line+1)
		p.isFenced = true
	case p.block != nil && strings.TrimSpace(line) == "":
		p.block.Text += "\n"
	case isIndented && (p.block != nil || p.isBlank):
		p.start(Indented, p.line)
		p.block.Text += text
	default:
		p.end()
		p.read(line)
	}
	p.isBlank = strings.TrimSpace(line) == ""
}

// start starts a block, unless the scanner is in one.
func (p *scanner) start(kind string, line int) {
	if p.block == nil {
		p.block = &Block{Line: line, Kind: kind, Above: strings.TrimSpace(p.above)}
	}
}

// end ends the block, if there is one.
func (p *scanner) end() {
	if p.block == nil {
		return
	}
	if !p.isFenced {
		p.block.Text = strings.TrimRight(p.block.Text, "\n") + "\n"
	}
	p.page.Blocks = append(p.page.Blocks, *p.block)
	p.block, p.isFenced, p.above = nil, false, ""
}

// read takes a line of text: the first one of a paragraph starts it.
func (p *scanner) read(line string) {
	if p.isBlank && strings.TrimSpace(line) != "" {
		p.above = ""
	}
	p.above += " " + strings.TrimSpace(line)
}
