package tool

import (
	"fmt"
	"slices"
)

// A Set holds tools under their names, in the order in which they were added. The zero value is an
// empty set. Once filled it may be used by many goroutines.
type Set struct {
	tools   map[string]Tool
	schemas map[string]*schema
	names   []string
}

// NewSet returns a set of tools. It refuses a name that is there twice and a schema that is broken, so
// that a worker finds out at its start and not in the middle of a turn.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{}
	for _, t := range tools {
		if err := s.Add(t); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Add puts one more tool into the set.
func (s *Set) Add(t Tool) error {
	spec := t.Spec()
	if !toolName.MatchString(spec.Name) || !spec.Version.Valid() {
		return fmt.Errorf("tool %.80q: its spec did not come from tool.Declare; use that to make it", spec.Name)
	}
	if _, ok := s.tools[spec.Name]; ok {
		return fmt.Errorf("tool %q: the name is taken by another tool; rename one of them", spec.Name)
	}
	_, reconciles := AsReconciler(t)
	if err := checkExtras(spec, reconciles); err != nil {
		return err
	}
	sch, err := compile(spec)
	if err != nil {
		return err
	}
	for _, name := range spec.Identity {
		if len(sch.properties) > 0 && !slices.Contains(sch.properties, name) {
			return fmt.Errorf("tool %q: its identity names %q, which is not among its parameters: %s", spec.Name, name, list(sch.properties))
		}
	}
	if s.tools == nil {
		s.tools, s.schemas = map[string]Tool{}, map[string]*schema{}
	}
	s.tools[spec.Name], s.schemas[spec.Name] = t, sch
	s.names = append(s.names, spec.Name)
	return nil
}

// Lookup returns the tool of that exact name.
func (s *Set) Lookup(name string) (Tool, bool) {
	t, ok := s.tools[name]
	return t, ok
}

// Names returns the tools' names in the order in which they were added.
func (s *Set) Names() []string { return append([]string(nil), s.names...) }

// Validate checks canonical arguments against the schema of the named tool, numbers exactly. The
// error's text tells the model what to mend.
func (s *Set) Validate(name, args string) error {
	sch, ok := s.schemas[name]
	if !ok {
		return fmt.Errorf("there is no tool %.80q", name)
	}
	return sch.validate(args)
}
