package deploy

import "fmt"

// A SerialError reports two builds whose workers read configurations of different serials, so that the one behind
// would refuse, again and again, what has been on the other.
type SerialError struct{ Behind, Ahead Build }

func (e *SerialError) Error() string {
	return fmt.Sprintf("workers of build %q read a holdfast.yaml of serial %d, and those of build %q one of serial %d: whatever has seen that is refused by build %q, "+
		"and stands still there; give its file a serial of at least %d, its content may stay, and do this again; or use --force",
		e.Behind.ID, e.Behind.serial(), e.Ahead.ID, e.Ahead.serial(), e.Behind.ID, e.Ahead.serial())
}

// serial is of the configuration that a build's workers read, 0 if they do not say.
func (b Build) serial() int64 {
	if b.Table == nil {
		return 0
	}
	return b.Table.Serial
}

// behind says that work which goes to b may have seen a configuration that b's workers refuse for: one of any other
// build.
func (d *Deployment) behind(b Build) error {
	for _, other := range d.Builds {
		if b.serial() != 0 && other.ID != b.ID && other.serial() > b.serial() {
			return &SerialError{Behind: b, Ahead: other}
		}
	}
	return nil
}

// apart says that work which goes to b and to the current build by turns would stand still at one of them.
func (d *Deployment) apart(b Build) error {
	now, err := d.Build(d.Current)
	if err == nil && now.serial() != 0 && now.serial() < b.serial() {
		return &SerialError{Behind: now, Ahead: b}
	}
	return d.behind(b)
}
