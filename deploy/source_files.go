package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/versioning/replay"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Files replays saved histories: the files of paths, all *.json files below those that are folders, and standard
// input for [Stdin]. Each file is read once, however often it is named. It needs no server. A file that cannot be
// read or is no history is in the report as unread.
func (g Gate) Files(ctx context.Context, paths []string, each func(Item)) (Report, error) {
	return g.run(ctx, func(_ context.Context, q *queue) error {
		jobs := g.filed(paths)
		q.expect(len(jobs))
		for _, j := range jobs {
			if !q.put(j) {
				break
			}
		}
		return nil
	}, each)
}

// filed finds the files that are meant.
func (g Gate) filed(paths []string) (jobs []job) {
	seen := map[string]bool{}
	add := func(path string, err error) {
		if key := filepath.Clean(path); !seen[key] || err != nil {
			seen[key] = true
			jobs = append(jobs, job{item: Item{Source: path}, err: err, fetch: func(ctx context.Context) (*historypb.History, error) {
				return g.readFile(ctx, path)
			}})
		}
	}
	for _, path := range paths {
		if info, err := os.Stat(path); path == Stdin || err != nil || !info.IsDir() {
			add(path, nil) // one that is not there says so when it is opened
			continue
		}
		// The root is resolved: a link to a folder means the folder.
		err := filepath.WalkDir(path+string(filepath.Separator), func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				add(file, unreadable(err))
			case strings.EqualFold(filepath.Ext(file), ".json") && isFile(file, d):
				add(file, nil)
			}
			return nil
		})
		if err != nil {
			add(path, unreadable(err))
		}
	}
	return jobs
}

// isFile says whether an entry is a file or a link to one. What else lies in a folder, such as a pipe, might never end.
func isFile(path string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return d.Type().IsRegular()
	}
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular() // one that leads nowhere says so when it is opened
}

func (g Gate) readFile(ctx context.Context, path string) (*historypb.History, error) {
	if path == Stdin {
		if g.Stdin == nil {
			return nil, errors.New("there is no standard input")
		}
		return replay.Read(attentive{ctx, g.Stdin})
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer f.Close()
	return replay.Read(attentive{ctx, f})
}

// unreadable says why a file cannot be read, without its name: that is the item's.
func unreadable(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("cannot be read: %w", err)
}

// attentive stops a reading between two pieces when ctx is done.
type attentive struct {
	ctx context.Context
	r   io.Reader
}

func (a attentive) Read(p []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	return a.r.Read(p)
}
