package image

import (
	"encoding/base64"
	"regexp"
	"strings"

	"google.golang.org/grpc/status"
)

// hidden is what stands in the place of a secret.
const hidden = "***"

// Where messages of registries and proxies carry secrets: as user of a URL, in its query (signed
// URLs of blob stores), and in quoted headers.
var (
	urlUser  = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/"'@]*(?:@[^\s/"'@]*)*@`)
	urlQuery = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'?]*\?)[^\s"']+`)
	schemes  = regexp.MustCompile(`(?i)\b(basic|bearer)(:? +)(?:[a-z0-9._~+/=-]*[0-9=][a-z0-9._~+/=-]*|[a-z._~+/-]{16,})`)
)

// scrub returns the error with a text without secrets: those that a text of this kind may carry,
// and the credentials that were used. Of a wrapped error only the gRPC code is kept.
func scrub(err error, used Auth) error {
	if err == nil {
		return nil
	}
	text := scrubText(err.Error(), used)
	return &failure{text, status.Error(status.Code(err), text)}
}

func scrubText(text string, used Auth) string {
	pair := used.Username + ":" + used.Password
	for _, secret := range []string{base64.StdEncoding.EncodeToString([]byte(pair)), pair, used.Password} {
		if len(secret) > 3 && used.Password != "" { // shorter ones are parts of words
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	text = urlUser.ReplaceAllString(text, "${1}"+hidden+"@")
	text = urlQuery.ReplaceAllString(text, "${1}"+hidden)
	return schemes.ReplaceAllString(text, "${1}${2}"+hidden)
}
