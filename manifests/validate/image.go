package validate

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
	"monopod/manifests/imagename"
)

// goodImage ends the warnings about image names.
const goodImage = "a good one is [registry/]name[:tag], such as nginx:1.29 or registry.example.com/team/app:2"

// image warns of an image name that no registry accepts. At run time the container, or the volume,
// waits with the reason InvalidImageName.
func (c *checker) image(p *field.Path, name string) {
	_, err := imagename.Parse(name)
	if name == "" || err == nil {
		return
	}
	good := "; " + goodImage
	hint, why := good, imageFault(name)
	if meant := repaired(name); meant != "" {
		hint = fmt.Sprintf(": did you mean %q?", decode.Clip(meant))
	}
	full := cmp.Or(why, err.Error())
	c.warnQuoting(p, decode.Message{Full: fmt.Sprintf("no registry takes the name %q: %s%s", decode.Clip(name), full, hint),
		Plain: "no registry takes the name: " + cmp.Or(why, "it is none") + good})
}

// imageFault describes the parser's error; "": there is no description for it.
func imageFault(name string) string {
	before, _, digested := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], "@")
	switch {
	case strings.ContainsFunc(name, unicode.IsSpace):
		return "it has a blank"
	case strings.Contains(name, "://"):
		return "an image name has no scheme such as https://"
	case strings.ContainsAny(name, "${}"):
		return "variables are not expanded in it"
	case strings.HasSuffix(before, ":"):
		return "the tag behind the colon is empty"
	case strings.Count(before, ":") > 1:
		return "it has two tags"
	case isImage(strings.ToLower(name)):
		return "all behind the registry and before the tag is lower case"
	case digested:
		return "behind the @ comes a digest, sha256: and 64 hex digits"
	case len(name) == 64 && strings.Trim(name, "0123456789abcdef") == "":
		return "this is the id of an image, not its name"
	}
	return ""
}

// repaired returns the name that is most likely meant; "" if there is none.
func repaired(name string) string {
	if _, rest, ok := strings.Cut(name, "://"); ok {
		name = rest
	}
	name = strings.TrimSuffix(name, ":")
	tag := len(name)
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		tag = colon
	}
	for _, try := range []string{name, strings.ToLower(name[:tag]) + name[tag:]} {
		if isImage(try) {
			return try
		}
	}
	return ""
}

func isImage(name string) bool {
	_, err := imagename.Parse(name)
	return err == nil
}
