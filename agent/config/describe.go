package config

import "strings"

// Setting is the documentation of a setting.
type Setting struct {
	Name    string // in the file; a dot leads into an object
	Flag    string // wins over the file, with its dashes; "": none
	Default string // as in a file
	Live    bool   // a new value takes effect at once; else after a restart
	About   string // sentences, in one line
}

// Settings returns all settings of a file, in its order.
func Settings() (all []Setting) {
	c := Default()
	for _, r := range rows(&c) {
		if r.name == "" {
			continue
		}
		s := Setting{Name: r.name, Default: inYAML(shown(r.get())), Live: r.when == live, About: strings.ReplaceAll(r.about, "\n", " ")}
		if r.flag != "" {
			s.Flag = "--" + r.flag
		}
		all = append(all, s)
	}
	return all
}
