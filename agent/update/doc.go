// Package update decides how a running pod becomes the next version of itself.
package update
