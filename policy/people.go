package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// people checks the approvers and gathers their groups.
func (k *checker) people() {
	k.groups = map[string][]string{}
	owners, folded := map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(k.c.Approvers)) {
		path := "approvers/" + name
		if !visible(name) {
			k.say(path, "", "a name has 1 to %d bytes, all of them visible", agent.MaxName)
		}
		if other := folded[strings.ToLower(name)]; other != "" {
			k.say(path, "", "approver %q differs from it only in case: people could not tell them apart", other)
		}
		folded[strings.ToLower(name)] = name
		a := k.c.Approvers[name]
		for i, g := range a.Groups {
			_, person := k.c.Approvers[g]
			if !visible(g) || person {
				k.say(fmt.Sprintf("%s/groups/%d", path, i), "", "%q cannot be a group: use a visible name that no approver has", g)
			}
			if !slices.Contains(k.groups[g], name) {
				k.groups[g] = append(k.groups[g], name)
			}
		}
		k.keys(path, name, a.Keys, owners)
	}
}

// keys refuses a key that two people have: a signature by it would prove neither.
func (k *checker) keys(path, name string, keys []Key, owners map[string]string) {
	for i, key := range keys {
		at := fmt.Sprintf("%s/keys/%d", path, i)
		if key.Key == nil {
			k.say(at, "", "there is no key: use a line such as ssh-ed25519 AAAA... alice")
			continue
		}
		id := string(key.Key.Marshal())
		switch owner, taken := owners[id]; {
		case taken && owner == name:
			k.say(at, "", "this key is there twice")
		case taken:
			k.say(at, "", "approver %q has the same key: a signature would prove neither", owner)
		}
		owners[id] = name
	}
}
