package httptransport

import (
	"net/http"
	"testing"
)

func TestSchemesAreComparedAsASCII(t *testing.T) {
	for header, wanted := range map[string][3]string{
		"BEARER  abc\t":            {"token", "abc", ""},
		"Bearer \u00a0abc\u3000":   {"token", "\u00a0abc\u3000", ""},
		"Bas\u0130c Ym9iOnB3":      {"header", "Ym9iOnB3", "Bas\u0130c"},
		"\u212Aerberos Ym9iOnB3":   {"header", "Ym9iOnB3", "\u212Aerberos"},
		"BASIC Ym9iOnB3":           {"password", "pw", ""},
		"Hoba result=\"K\u212A\" ": {"header", "result=\"K\u212A\" ", "Hoba"},
	} {
		request, err := http.NewRequest("GET", "https://h/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header["Authorization"] = []string{header}
		found, err := credential(request)
		if err != nil {
			t.Errorf("%q: %v", header, err)
			continue
		}
		if got := [3]string{found.Type, found.Token + found.Value + found.Password, found.Scheme}; got != wanted {
			t.Errorf("%q: %q, wanted %q", header, got, wanted)
		}
	}
}
