package activities

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/openai"
)

// callID is what every known provider takes back.
var callID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// callIDs returns an id for each call, none of which is in used or there twice. The provider's id is kept
// where that is so; another is made of nine letters and digits, the strictest form a provider asks for,
// from the call's place alone, so that the same answer gets the same ids.
func callIDs(calls []openai.Call, used map[string]bool, p agent.Place) []string {
	taken := make(map[string]bool, len(calls))
	ids := make([]string, len(calls))
	for i, c := range calls {
		id := c.ID
		for try := 0; !callID.MatchString(id) || used[id] || taken[id]; try++ {
			id = madeID(fmt.Sprintf("%d/%d.%d/%d/%s", p.Turn, p.Step, i+1, try, c.ID))
		}
		taken[id] = true
		ids[i] = id
	}
	return ids
}

func madeID(seed string) string {
	sum := sha256.Sum256([]byte(seed))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:9]
}
