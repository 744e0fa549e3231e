package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime/debug"
)

// unknownBuild is the id of an executable that cannot be read.
const unknownBuild = "dev"

// BuildID names the code of this process, for records and for the operator: the revision that it was
// built from, the version of the module, or else "dev-" and a digest of the executable. It reads the
// executable; call it once.
func BuildID() string {
	info, _ := debug.ReadBuildInfo()
	if id := buildID(info); id != "" {
		return id
	}
	path, err := os.Executable()
	if err != nil {
		return unknownBuild
	}
	f, err := os.Open(path)
	if err != nil {
		return unknownBuild
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return unknownBuild
	}
	return "dev-" + hex.EncodeToString(h.Sum(nil))[:12]
}

// buildID returns nothing for a build that cannot be told from another: a modified tree has the revision
// of the one it came from.
func buildID(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	if rev := set["vcs.revision"]; rev != "" {
		if set["vcs.modified"] == "true" {
			return ""
		}
		return rev[:min(len(rev), 12)]
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return ""
}
