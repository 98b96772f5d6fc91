// Package docs runs what the pages of the docs have a person type, and compares what they quote.
//
// A page is run in one shell, from its first block to its last, on a machine of its own: `make
// test-docs` makes one of namespaces, with a disk that is forgotten. Of a block the word behind its
// fence says what a person does with it:
//
//	sh       types it; each command must succeed
//	console  types what stands behind "$ " (and "> " on the lines below it), and sees the rest. A
//	         line "..." is any number of lines
//	others   puts them into the file that the paragraph above names: "Put this into `FILE`", or
//	         "Add this to `FILE`"
//
// A block that is not run has a row with the reason in notrun.go; a block with neither fails the
// unit tests.
package docs
