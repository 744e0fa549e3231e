package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// provers is how many creates of one name Prove lets race.
const provers = 8

// Prove shows on the bucket itself what everything else relies on: an object can be written and read back,
// a second create of its name fails and changes nothing, of creates at the same time exactly one wins, and
// objects can be deleted. It removes what it wrote.
func (s *Store) Prove(ctx context.Context) (err error) {
	probe := "probe/" + rand.Text()
	one, race := probe+"-one", probe+"-race"
	for _, name := range []string{one, race} {
		_, err := s.read(ctx, name)
		switch {
		case err == nil:
			return s.unsafe("an object that was never written is there")
		case !errors.Is(err, ErrAbsent):
			return fmt.Errorf("store %q: an object that was never written is not reported as absent: %w", s.url, err)
		}
	}
	defer func() { err = errors.Join(err, s.remove(ctx, one), s.remove(ctx, race)) }()
	if err := s.proveSecond(ctx, one); err != nil {
		return err
	}
	return s.proveRace(ctx, race)
}

// remove deletes a probe if it is there.
func (s *Store) remove(ctx context.Context, name string) error {
	err := s.bucket.Delete(context.WithoutCancel(ctx), name)
	if err == nil {
		return nil
	}
	if err = s.fail("delete", name, err); errors.Is(err, ErrAbsent) {
		return nil
	}
	return err
}

func (s *Store) proveSecond(ctx context.Context, name string) error {
	first, second := []byte("first"), []byte("second")
	created, err := s.create(ctx, name, first)
	if err != nil {
		return err
	}
	if !created {
		return fmt.Errorf("store %q: a create of a new name reports that it exists", s.url)
	}
	if created, err = s.create(ctx, name, second); err != nil {
		return err
	}
	if created {
		return s.unsafe("a second create of the same name succeeded")
	}
	got, err := s.read(ctx, name)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, first) {
		return s.unsafe("a second create of the same name changed the object")
	}
	return nil
}

func (s *Store) proveRace(ctx context.Context, name string) error {
	var won [provers]bool
	var g errgroup.Group
	for i := range provers {
		g.Go(func() (err error) {
			won[i], err = s.create(ctx, name, []byte{'0' + byte(i)})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	got, err := s.read(ctx, name)
	if err != nil {
		return err
	}
	winners := 0
	for i, w := range won {
		if w {
			winners++
			if !bytes.Equal(got, []byte{'0' + byte(i)}) {
				return s.unsafe("the object is not what the winner of a race wrote")
			}
		}
	}
	if winners != 1 {
		return s.unsafe(fmt.Sprintf("of %d creates of one name at once %d succeeded", provers, winners))
	}
	return nil
}

func (s *Store) unsafe(what string) error {
	return fmt.Errorf("store %q: %s: this bucket cannot keep an effect from being sent twice; use another", s.url, what)
}
